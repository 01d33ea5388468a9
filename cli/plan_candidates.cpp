#include "cli/plan_candidates.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/format.h"

namespace foretrain {
namespace {

enum class DataKind { ddp, zero1, zero2, fsdp };

std::vector<std::int32_t> divisors(std::int32_t n) {
  std::vector<std::int32_t> list;
  for (std::int32_t d = 1; d <= n; ++d) {
    if (n % d == 0) list.push_back(d);
  }
  return list;
}

// Sequences of one step over the whole job.
std::int64_t global_batch(const Scenario& s) {
  return s.training.micro_batch_size * s.training.micro_batches * s.parallel.dp * s.parallel.fsdp;
}

void add_data_kinds(const Scenario& scenario, const Candidate& base, std::int32_t data,
                    std::vector<Candidate>& list) {
  for (const DataKind kind : {DataKind::ddp, DataKind::zero1, DataKind::zero2, DataKind::fsdp}) {
    if (data == 1 && kind != DataKind::ddp) break;
    Candidate c = base;
    c.plan.dp = kind == DataKind::fsdp ? 1 : data;
    c.plan.fsdp = kind == DataKind::fsdp ? data : 1;
    c.plan.zero_stage = kind == DataKind::zero1 ? 1 : kind == DataKind::zero2 ? 2 : 0;
    c.plan.fsdp_options.unit = FsdpUnit::block;
    if (!check(c.plan, scenario.model, c.training).empty()) continue;
    list.push_back(c);
  }
}

}  // namespace

std::vector<Candidate> enumerate_candidates(const Scenario& scenario, std::int32_t gpus) {
  std::vector<Candidate> list;
  const std::int64_t batch = global_batch(scenario);
  const std::int32_t per_node =
      std::max(1, scenario.cluster.gpu_count() / std::max(1, scenario.cluster.node_count()));
  for (const std::int32_t tp : divisors(std::min(gpus, per_node))) {
    if (gpus % tp != 0) continue;
    for (const std::int32_t pp : divisors(gpus / tp)) {
      const std::int32_t data = gpus / tp / pp;
      if (batch % data != 0) continue;
      for (std::int64_t size = 1; size <= batch / data; size *= 2) {
        if (batch / data % size != 0) continue;
        for (const PipelineSchedule schedule :
             {PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved, PipelineSchedule::gpipe}) {
          if (pp == 1 && schedule != PipelineSchedule::one_f_one_b) continue;
          for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
            // Flash attention keeps no scores, so that there is nothing for selective recomputation to save.
            if (recompute == Recompute::selective && scenario.training.attention == AttentionKernel::flash)
              continue;
            Candidate c{scenario.parallel, scenario.training};
            c.plan.tp = tp;
            c.plan.pp = pp;
            c.plan.pp_forward_only_ranks = false;
            c.plan.tp_kind = TensorParallelKind::megatron;
            c.plan.sequence_parallel = tp > 1 && scenario.training.sequence_length % tp == 0;
            c.plan.schedule = schedule;
            c.plan.virtual_stages = schedule == PipelineSchedule::interleaved ? 2 : 1;
            c.training.micro_batch_size = size;
            c.training.micro_batches = batch / data / size;
            c.training.recompute = recompute;
            add_data_kinds(scenario, c, data, list);
          }
        }
      }
    }
  }
  return list;
}

std::string describe(const Candidate& c) {
  std::string text = describe(c.plan);
  text += fmt::format(", {} x {} sequence{}", c.training.micro_batches, c.training.micro_batch_size,
                      c.training.micro_batch_size == 1 ? "" : "s");
  if (c.training.recompute == Recompute::selective) text += ", selective recompute";
  if (c.training.recompute == Recompute::full) text += ", full recompute";
  return text;
}

std::string reason_behind(const Prediction& winner, const Prediction& loser) {
  const RankBreakdown& w = winner.mean_breakdown;
  const RankBreakdown& l = loser.mean_breakdown;
  const std::pair<const char*, double> differences[] = {
      {"exposed communication", (l.exposed_communication - w.exposed_communication).ms()},
      {"pipeline bubble", (l.bubble - w.bubble).ms()},
      {"computing (smaller kernels or recomputation)", (l.compute - w.compute).ms()},
      {"waiting for the host to issue kernels", (l.host - w.host).ms()}};
  const auto worst = std::max_element(std::begin(differences), std::end(differences),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  const double behind = loser.step_time_ms.value - winner.step_time_ms.value;
  if (behind <= 0.005 * winner.step_time_ms.value) {
    const double memory = loser.reserved_memory_gib.value - winner.reserved_memory_gib.value;
    return memory > 0 ? fmt::format("as fast, but {:.2f} GiB more memory", memory) : "as fast";
  }
  return fmt::format("+{:.1f} ms, mostly {} (+{:.1f} ms)", behind, worst->first, worst->second);
}

std::string reason_not_fitting(const Prediction& p) {
  const MemoryReport& m = p.memory[static_cast<std::size_t>(p.fullest_class)];
  const auto largest = std::max_element(m.at_peak.begin(), m.at_peak.end());
  const auto which = static_cast<MemoryClass>(largest - m.at_peak.begin());
  return fmt::format("does not fit: {:.1f} GiB of {:.1f} GiB, most of it {} ({:.1f} GiB)",
                     p.reserved_memory_gib.value, p.gpu_memory.gib(), name_of(which), largest->gib());
}

}  // namespace foretrain
