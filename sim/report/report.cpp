#include "sim/report/report.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/ops/expand.h"

namespace foretrain {
namespace {

Interval exact(double value) { return Interval{value, value, value}; }

}  // namespace

FlopRate peak_rate(const GpuSpec& gpu, Precision precision) {
  const auto first_known = [&](FlopRate wanted, FlopRate other) {
    return wanted.per_s() > 0 ? wanted : other;
  };
  switch (precision) {
    case Precision::fp32:
      return gpu.fp32;
    case Precision::tf32:
      return first_known(gpu.tf32, gpu.fp32);
    case Precision::fp16_amp:
      return first_known(gpu.fp16, gpu.fp32);
    case Precision::bf16_amp:
    case Precision::bf16:
      return first_known(gpu.bf16, gpu.fp32);
  }
  return gpu.fp32;
}

Flops hardware_flops(const StepProgram& program) {
  std::vector<Flops> of_list;
  of_list.reserve(program.op_lists.size());
  for (const OpList& list : program.op_lists) {
    Flops sum;
    for (const Op& op : list.ops) sum += op.flops;
    of_list.push_back(sum);
  }
  Flops total;
  for (const RankClass& rank_class : program.classes) {
    for (const Instruction& i : rank_class.instructions) {
      if (i.op_list >= 0) total += of_list[static_cast<std::size_t>(i.op_list)];
    }
  }
  const std::int32_t ranks_per_class =
      program.mesh.world() / std::max<std::int32_t>(1, program.mesh.at(MeshDim::pp));
  return total * static_cast<double>(ranks_per_class);
}

double tokens_per_step(const StepProgram& program) {
  return static_cast<double>(program.training.tokens_per_micro_batch()) *
         static_cast<double>(program.training.micro_batches) *
         static_cast<double>(program.mesh.group_size(kDataParallel));
}

Prediction make_report(const StepProgram& program, const Cluster& cluster, const Profile& profile,
                       SimulationResult result) {
  static_cast<void>(profile);
  Prediction p;
  const GpuSpec& gpu = cluster.gpu;
  const Precision precision = program.training.precision;
  p.gpus = program.mesh.world();
  p.tokens_per_step = tokens_per_step(program);
  p.peak = peak_rate(gpu, precision);
  p.peak_name =
      fmt::format("{} dense, {}: {:.1f} TFLOPS", name_of(precision), gpu.full_name, p.peak.tflops());
  const double seconds = result.step_time.seconds();
  const double capacity = seconds * static_cast<double>(p.gpus) * p.peak.per_s();
  const auto share = [capacity](Flops flops) { return exact(capacity > 0 ? flops.count() / capacity : 0); };
  p.step_time_ms = exact(result.step_time.ms());
  p.tokens_per_s = exact(seconds > 0 ? p.tokens_per_step / seconds : 0);
  p.mfu = share(model_flops_6n(program.model, p.tokens_per_step));
  p.mfu_with_attention =
      share(model_flops_with_attention(program.model, program.training.sequence_length, p.tokens_per_step));
  p.hfu = share(hardware_flops(program));

  p.breakdown = result.breakdown;
  const auto classes = static_cast<std::int64_t>(std::max<std::size_t>(1, p.breakdown.size()));
  // Every class has equally many ranks.
  const auto mean = [&](Time RankBreakdown::*part) {
    std::int64_t sum = 0;
    for (const RankBreakdown& b : p.breakdown) sum += (b.*part).ps();
    return Time::from_ps(sum / classes);
  };
  p.mean_breakdown.compute = mean(&RankBreakdown::compute);
  p.mean_breakdown.exposed_communication = mean(&RankBreakdown::exposed_communication);
  p.mean_breakdown.bubble = mean(&RankBreakdown::bubble);
  p.mean_breakdown.host = mean(&RankBreakdown::host);
  p.mean_breakdown.overlapped_communication = mean(&RankBreakdown::overlapped_communication);
  p.exposed_communication = p.mean_breakdown.exposed_communication;
  p.bubble_fraction = result.step_time > Time{} ? p.mean_breakdown.bubble / result.step_time : 0;

  p.memory = std::move(result.memory);
  p.gpu_memory = gpu.memory;
  for (std::size_t c = 0; c < p.memory.size(); ++c) {
    const auto fullest = static_cast<std::size_t>(p.fullest_class);
    if (p.memory[c].peak_allocated > p.memory[fullest].peak_allocated) {
      p.fullest_class = static_cast<std::int32_t>(c);
    }
    if (p.memory[c].exceeded) p.fits = false;
  }
  if (!p.memory.empty()) {
    const MemoryReport& fullest = p.memory[static_cast<std::size_t>(p.fullest_class)];
    p.peak_memory_gib = exact(fullest.peak_allocated.gib());
    p.reserved_memory_gib = exact(fullest.peak_reserved.gib());
  }
  p.warnings = program.warnings;
  p.collective_lower_bound = result.collective_lower_bound;
  p.event_hash = result.event_hash;
  p.events = result.events;
  p.timeline = std::move(result.timeline);
  p.timeline.title = fmt::format("{}, {}, on {}", program.model.name, describe(program.plan), cluster.name);
  p.graph = std::move(result.graph);
  return p;
}

Expected<Prediction> predict(const TransformerConfig& model, const TrainingSpec& training,
                             const ParallelPlan& plan, const Cluster& cluster, const Profile& profile,
                             const PredictOptions& options) {
  auto program = build_step_program(model, training, plan);
  if (!program) return fail(std::move(program.error()));
  auto simulator = Simulator::create(*program, cluster);
  if (!simulator) return fail(std::move(simulator.error()));
  return predict(*program, *simulator, cluster, profile, options);
}

}  // namespace foretrain
