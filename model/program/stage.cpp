#include "model/program/stage.h"

#include <algorithm>
#include <cstddef>

namespace foretrain {

std::vector<BlockRange> partition_blocks(const TransformerConfig& model, const ParallelPlan& plan) {
  const std::int64_t parts = std::int64_t{plan.pp} * plan.virtual_stages;
  const std::int64_t share = model.layers / parts;
  const std::int64_t extra = model.layers % parts;
  std::vector<BlockRange> ranges;
  std::int64_t next = 0;  // the embedding
  for (std::int64_t part = 0; part < parts; ++part) {
    std::int64_t end = next + share + (part < extra ? 1 : 0);
    if (part == 0) end += 1;
    if (part == parts - 1) end += 1;
    ranges.push_back({static_cast<std::int32_t>(next), static_cast<std::int32_t>(end)});
    next = end;
  }
  return ranges;
}

Stage make_stage(const TransformerConfig& model, const TrainingSpec& training, const ParallelPlan& plan,
                 std::int32_t index) {
  Stage stage;
  stage.index = index;
  stage.count = plan.pp;
  const std::vector<BlockRange> parts = partition_blocks(model, plan);
  for (std::size_t part = static_cast<std::size_t>(index); part < parts.size();
       part += static_cast<std::size_t>(plan.pp)) {
    stage.chunks.push_back(parts[part]);
    for (std::int32_t block = parts[part].begin; block < parts[part].end; ++block) {
      stage.blocks.push_back(block);
    }
  }
  stage.holds_embedding = index == 0;
  stage.holds_head = index == plan.pp - 1;
  stage.tasks = task_order(plan, index, static_cast<std::int32_t>(training.micro_batches));
  stage.runs_backward = std::any_of(stage.tasks.begin(), stage.tasks.end(),
                                    [](const ScheduledTask& task) { return !task.forward; });

  std::vector<std::int32_t> backwards(static_cast<std::size_t>(block_count(model)), 0);
  for (std::size_t t = 0; t < stage.tasks.size(); ++t) {
    const ScheduledTask& task = stage.tasks[t];
    const BlockRange& chunk = stage.chunks[static_cast<std::size_t>(task.chunk)];
    const std::int32_t length = chunk.end - chunk.begin;
    for (std::int32_t i = 0; i < length; ++i) {
      ComputeStep step;
      step.forward = task.forward;
      step.block = task.forward ? chunk.begin + i : chunk.end - 1 - i;
      step.micro_batch = task.micro_batch;
      step.chunk = task.chunk;
      step.task = static_cast<std::int32_t>(t);
      step.first_of_task = i == 0;
      step.last_of_task = i == length - 1;
      if (!task.forward) {
        const std::int32_t done = backwards[static_cast<std::size_t>(step.block)]++;
        step.first_backward = done == 0;
        step.last_backward = done == training.micro_batches - 1;
      }
      stage.steps.push_back(step);
    }
  }
  return stage;
}

}  // namespace foretrain
