// What one pipeline stage holds and the order of its block-wise compute steps.
#pragma once

#include <cstdint>
#include <vector>

#include "model/arch/transformer.h"
#include "model/plan/parallel_plan.h"
#include "model/plan/training.h"
#include "model/program/schedules/schedule.h"

namespace foretrain {

// First and one-past-last block of each of pp x virtual_stages parts, in forward order; part k is chunk
// k / pp of stage k % pp. Layers are split as evenly as possible, the first parts take one more when they do
// not divide; the embedding is with the first part, the head with the last.
struct BlockRange {
  std::int32_t begin = 0, end = 0;
};
std::vector<BlockRange> partition_blocks(const TransformerConfig& model, const ParallelPlan& plan);

// One forward or backward of one block.
struct ComputeStep {
  bool forward = true;
  std::int32_t block = 0, micro_batch = 0, chunk = 0;
  std::int32_t task = 0;  // index into Stage::tasks
  bool first_of_task = false, last_of_task = false;
  bool first_backward = false, last_backward = false;  // of this block in the step, in issue order
};

struct Stage {
  std::int32_t index = 0;
  std::int32_t count = 1;            // stages of the pipeline
  std::vector<BlockRange> chunks;    // by chunk
  std::vector<std::int32_t> blocks;  // forward order
  TaskOrder tasks;
  std::vector<ComputeStep> steps;
  bool runs_backward = true;
  bool holds_embedding = false, holds_head = false;

  std::int32_t part_of(std::int32_t chunk) const { return chunk * count + index; }
  bool is_first_part(std::int32_t chunk) const { return part_of(chunk) == 0; }
  bool is_last_part(std::int32_t chunk) const {
    return part_of(chunk) == static_cast<std::int32_t>(chunks.size()) * count - 1;
  }
};

Stage make_stage(const TransformerConfig& model, const TrainingSpec& training, const ParallelPlan& plan,
                 std::int32_t index);

}  // namespace foretrain
