// What a run writes down on request: spans, the graph of causes, and the order of allocations. Every method
// does nothing when its record was not asked for. Owned by one run; not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/device/host_segment.h"
#include "sim/engine/prepared.h"
#include "sim/engine/simulate.h"
#include "sim/memory/replay.h"

namespace foretrain {

class Recorder {
 public:
  Recorder(const Prepared& prepared, const SimulationOptions& options);

  bool spans() const { return options_.timeline; }
  bool op_spans() const { return options_.timeline && options_.ops; }
  bool graph() const { return options_.graph; }

  // Spans. `op` -1: the whole instruction.
  void instruction_span(std::int32_t rank_class, std::int32_t instruction, std::int64_t start,
                        std::int64_t end);
  void op_span(std::int32_t rank_class, std::int32_t instruction, std::int32_t op, std::int64_t start,
               std::int64_t end);
  void op_spans(std::int32_t rank_class, std::int32_t instruction, std::int32_t first_op,
                std::span<const SegmentWalk::OpTimes> times);
  void host_span(std::int32_t rank_class, std::int32_t instruction, std::int64_t start, std::int64_t end);

  // Graph. A node for something that happened at `time`; -1 when not recorded, which edges ignore.
  std::int32_t node(std::int64_t time, std::int32_t rank_class, std::int32_t instruction);
  void edge(std::int32_t from, std::int32_t to, std::int64_t duration = 0, CauseKind kind = CauseKind::order);
  std::int64_t time_of(std::int32_t node) const {
    return graph_.nodes[static_cast<std::size_t>(node)].time_ps;
  }

  void memory(std::int32_t rank_class, MemoryEvent event);

  // Moves the records into the result. `memory` reports are made from the record and the profile.
  void finish(SimulationResult& result, const Profile& profile);

 private:
  Span base_span(std::int32_t rank_class, std::int32_t instruction) const;

  const Prepared& prepared_;
  SimulationOptions options_;
  Timeline timeline_;
  StepGraph graph_;
  std::vector<std::vector<std::int32_t>> labels_;    // by class and instruction: index into names, or -1
  std::vector<std::vector<std::int32_t>> op_names_;  // by op list and op
  std::vector<std::vector<MemoryEvent>> memory_;
};

}  // namespace foretrain
