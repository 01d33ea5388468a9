// Pipeline schedules: the order in which one stage runs the forwards and backwards of its model chunks.
// A schedule knows nothing of blocks or transfers; one file per schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "model/plan/parallel_plan.h"

namespace foretrain {

struct ScheduledTask {
  bool forward = true;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  friend bool operator==(const ScheduledTask&, const ScheduledTask&) = default;
};
using TaskOrder = std::vector<ScheduledTask>;

// One micro-batch at a time: F0 B0 F1 B1 ... Also gradient accumulation without a pipeline.
TaskOrder sequential_schedule(std::int32_t micro_batches);

// All forwards, then all backwards, both in order of micro-batch (Huang et al. 2019; the order of
// torch.distributed.pipelining's ScheduleGPipe).
TaskOrder gpipe_schedule(std::int32_t micro_batches);

// PipeDream-flush: min(m, p - stage - 1) forwards to warm up, then one forward, one backward
// (Narayanan et al. 2021, section 2.2.1). At most p - stage micro-batches are in flight.
TaskOrder one_f_one_b_schedule(std::int32_t stages, std::int32_t stage, std::int32_t micro_batches);

// Interleaved 1F1B over `chunks` model chunks per stage, in Megatron-LM's order (schedules.py,
// forward_backward_pipelining_with_interleaving): (p - stage - 1) * 2 + (v - 1) * p forwards to warm up.
// Needs micro_batches divisible by stages.
TaskOrder interleaved_schedule(std::int32_t stages, std::int32_t stage, std::int32_t micro_batches,
                               std::int32_t chunks);

// The order of one stage under a plan. With one stage: gradient accumulation whatever the schedule. With
// pp_forward_only_ranks every stage but the last runs forwards only.
TaskOrder task_order(const ParallelPlan& plan, std::int32_t stage, std::int32_t micro_batches);

}  // namespace foretrain
