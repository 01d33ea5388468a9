#include "sim/engine/recorder.h"

#include <algorithm>
#include <tuple>

#include "model/program/step_program.h"

namespace foretrain {
namespace {

SpanCategory category_of(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::forward:
    case InstructionKind::backward:
    case InstructionKind::backward_input:
    case InstructionKind::backward_weight:
    case InstructionKind::recompute:
      return SpanCategory::compute;
    case InstructionKind::all_gather_params:
    case InstructionKind::reduce_scatter_grads:
    case InstructionKind::all_reduce_grads:
    case InstructionKind::all_reduce_flag:
    case InstructionKind::broadcast_buffers:
      return SpanCategory::communication;
    case InstructionKind::send:
    case InstructionKind::recv:
      return SpanCategory::pipeline_transfer;
    case InstructionKind::unscale:
    case InstructionKind::grad_norm:
    case InstructionKind::clip:
    case InstructionKind::optimizer_step:
    case InstructionKind::zero_grad:
      return SpanCategory::optimizer;
    case InstructionKind::host_to_device:
    case InstructionKind::device_to_host:
    case InstructionKind::save:
    case InstructionKind::copy_gradients:
    case InstructionKind::free_params:
      return SpanCategory::memory_copy;
  }
  return SpanCategory::compute;
}

}  // namespace

Recorder::Recorder(const Prepared& prepared, const SimulationOptions& options)
    : prepared_(prepared), options_(options) {
  const StepProgram& program = *prepared.program;
  timeline_.source = "simulated";
  timeline_.ranks = program.mesh.world();
  if (options_.memory) memory_.resize(program.classes.size());
  if (!options_.timeline) return;
  for (const RankClass& rank_class : program.classes)
    labels_.emplace_back(rank_class.instructions.size(), -1);
  if (options_.ops) {
    for (const OpList& list : program.op_lists) op_names_.emplace_back(list.ops.size(), -1);
  }
}

Span Recorder::base_span(std::int32_t rank_class, std::int32_t instruction) const {
  const StepProgram& program = *prepared_.program;
  const Instruction& i = program.classes[static_cast<std::size_t>(rank_class)]
                             .instructions[static_cast<std::size_t>(instruction)];
  Span span;
  span.rank = program.mesh.rank_at({rank_class, 0, 0, 0}).value;
  span.instruction = instruction;
  span.block = i.block;
  span.micro_batch = i.micro_batch;
  span.chunk = i.chunk;
  span.stream = static_cast<std::uint8_t>(i.stream);
  span.category = category_of(i.kind);
  span.bytes = i.payload.count();
  return span;
}

void Recorder::instruction_span(std::int32_t rank_class, std::int32_t instruction, std::int64_t start,
                                std::int64_t end) {
  if (!options_.timeline) return;
  std::int32_t& label = labels_[static_cast<std::size_t>(rank_class)][static_cast<std::size_t>(instruction)];
  if (label < 0) {
    label = timeline_.intern(label_of(prepared_.program->classes[static_cast<std::size_t>(rank_class)]
                                          .instructions[static_cast<std::size_t>(instruction)]));
  }
  Span span = base_span(rank_class, instruction);
  span.start_ps = start;
  span.end_ps = end;
  span.name = label;
  timeline_.spans.push_back(span);
}

void Recorder::op_span(std::int32_t rank_class, std::int32_t instruction, std::int32_t op, std::int64_t start,
                       std::int64_t end) {
  const StepProgram& program = *prepared_.program;
  const Instruction& i = program.classes[static_cast<std::size_t>(rank_class)]
                             .instructions[static_cast<std::size_t>(instruction)];
  const auto list = static_cast<std::size_t>(i.op_list);
  const Op& what = program.op_lists[list].ops[static_cast<std::size_t>(op)];
  std::int32_t& name = op_names_[list][static_cast<std::size_t>(op)];
  if (name < 0) name = timeline_.intern(what.name);
  Span span = base_span(rank_class, instruction);
  span.start_ps = start;
  span.end_ps = end;
  span.op = op;
  span.name = name;
  span.bytes = 0;
  if (what.kind == OpKind::collective) {
    span.category = SpanCategory::communication;
    span.bytes = what.collective.bytes.count();
  }
  timeline_.spans.push_back(span);
}

void Recorder::op_spans(std::int32_t rank_class, std::int32_t instruction, std::int32_t first_op,
                        std::span<const SegmentWalk::OpTimes> times) {
  const Instruction& i = prepared_.program->classes[static_cast<std::size_t>(rank_class)]
                             .instructions[static_cast<std::size_t>(instruction)];
  const std::vector<Op>& ops = prepared_.program->op_lists[static_cast<std::size_t>(i.op_list)].ops;
  for (std::size_t k = 0; k < times.size(); ++k) {
    const std::int32_t op = first_op + static_cast<std::int32_t>(k);
    const OpKind kind = ops[static_cast<std::size_t>(op)].kind;
    // Collectives are recorded when they happen; a sync is a point in time.
    if (kind == OpKind::collective || kind == OpKind::host_sync) continue;
    op_span(rank_class, instruction, op, times[k].start_ps, times[k].end_ps);
  }
}

void Recorder::host_span(std::int32_t rank_class, std::int32_t instruction, std::int64_t start,
                         std::int64_t end) {
  if (!options_.timeline || !options_.host_track || end == start) return;
  instruction_span(rank_class, instruction, start, end);
  timeline_.spans.back().stream = kHostTrack;
  timeline_.spans.back().category = SpanCategory::host;
}

std::int32_t Recorder::node(std::int64_t time, std::int32_t rank_class, std::int32_t instruction) {
  if (!options_.graph) return -1;
  graph_.nodes.push_back({time, rank_class, instruction});
  return static_cast<std::int32_t>(graph_.nodes.size()) - 1;
}

void Recorder::edge(std::int32_t from, std::int32_t to, std::int64_t duration, CauseKind kind) {
  if (!options_.graph || from < 0 || to < 0 || from == to) return;
  graph_.edges.push_back({from, to, duration, kind});
}

void Recorder::memory(std::int32_t rank_class, MemoryEvent event) {
  if (options_.memory) memory_[static_cast<std::size_t>(rank_class)].push_back(event);
}

void Recorder::finish(SimulationResult& result, const Profile& profile) {
  const StepProgram& program = *prepared_.program;
  if (options_.memory) {
    const bool amp = compute_dtype(program.training.precision) != DType::fp32;
    const double mib =
        profile[amp ? ParameterId::memory_constant_amp_mib : ParameterId::memory_constant_fp32_mib];
    ReplayOptions how;
    how.constant = Bytes(static_cast<std::int64_t>(mib * 1048576.0));
    how.matmul_workspace = cublas_workspace(prepared_.cluster->gpu.architecture);
    how.capacity = prepared_.cluster->gpu.memory;
    how.over_time = options_.memory_over_time || options_.timeline;
    for (std::size_t c = 0; c < program.classes.size(); ++c) {
      MemoryReplay replay = replay_memory(program, program.classes[c], memory_[c], how);
      if (options_.timeline) {
        if (timeline_.counters.empty()) timeline_.counters.emplace_back("allocated memory (bytes)");
        const std::int32_t rank = program.mesh.rank_at({static_cast<std::int32_t>(c), 0, 0, 0}).value;
        for (const auto& [time, bytes] : replay.over_time) {
          timeline_.samples.push_back({time, rank, 0, static_cast<double>(bytes)});
        }
      }
      MemoryReport report;
      report.peak_allocated = replay.peak_allocated;
      report.peak_reserved = replay.peak_reserved;
      report.exceeded = replay.exceeded;
      report.at_peak = replay.at_peak;
      report.peak_of_class = replay.peak_of_class;
      report.micro_batches_in_flight = replay.micro_batches_in_flight;
      if (options_.memory_over_time) report.over_time = std::move(replay.over_time);
      result.memory.push_back(std::move(report));
    }
  }
  if (options_.timeline) {
    if (options_.all_ranks) {
      const std::int32_t each = program.mesh.world() / program.mesh.at(MeshDim::pp);
      const std::size_t count = timeline_.spans.size();
      timeline_.spans.reserve(count * static_cast<std::size_t>(each));
      for (std::int32_t r = 1; r < each; ++r) {
        for (std::size_t k = 0; k < count; ++k) {
          Span span = timeline_.spans[k];
          span.rank += r;
          timeline_.spans.push_back(span);
        }
      }
    }
    // An instruction comes before its ops.
    std::stable_sort(timeline_.spans.begin(), timeline_.spans.end(), [](const Span& x, const Span& y) {
      return std::tuple(x.start_ps, x.rank, x.stream, x.op) < std::tuple(y.start_ps, y.rank, y.stream, y.op);
    });
    result.timeline = std::move(timeline_);
  }
  result.graph = std::move(graph_);
}

}  // namespace foretrain
