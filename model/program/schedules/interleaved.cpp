#include <algorithm>

#include "model/program/schedules/schedule.h"

namespace foretrain {
namespace {

// The k-th forward (or backward) that a stage runs: micro-batches go through in groups of p, every group
// through all chunks in turn, backwards through the chunks in reverse.
ScheduledTask virtual_micro_batch(bool forward, std::int32_t k, std::int32_t stages, std::int32_t chunks) {
  const std::int32_t in_group = k % (stages * chunks);
  const std::int32_t chunk = in_group / stages;
  return {forward, k / (stages * chunks) * stages + k % stages, forward ? chunk : chunks - 1 - chunk};
}

}  // namespace

TaskOrder interleaved_schedule(std::int32_t stages, std::int32_t stage, std::int32_t micro_batches,
                               std::int32_t chunks) {
  const std::int32_t total = micro_batches * chunks;
  const std::int32_t warm_up = std::min(total, (stages - stage - 1) * 2 + (chunks - 1) * stages);
  TaskOrder order;
  order.reserve(2 * static_cast<std::size_t>(total));
  for (std::int32_t k = 0; k < warm_up; ++k) order.push_back(virtual_micro_batch(true, k, stages, chunks));
  for (std::int32_t k = warm_up; k < total; ++k) {
    order.push_back(virtual_micro_batch(true, k, stages, chunks));
    order.push_back(virtual_micro_batch(false, k - warm_up, stages, chunks));
  }
  for (std::int32_t k = total - warm_up; k < total; ++k) {
    order.push_back(virtual_micro_batch(false, k, stages, chunks));
  }
  return order;
}

}  // namespace foretrain
