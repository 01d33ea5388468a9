#include "model/program/schedules/schedule.h"

namespace foretrain {

TaskOrder task_order(const ParallelPlan& plan, std::int32_t stage, std::int32_t micro_batches) {
  const auto scheduled = [&] {
    if (plan.pp == 1) return sequential_schedule(micro_batches);
    switch (plan.schedule) {
      case PipelineSchedule::sequential:
        return sequential_schedule(micro_batches);
      case PipelineSchedule::gpipe:
        return gpipe_schedule(micro_batches);
      case PipelineSchedule::one_f_one_b:
        return one_f_one_b_schedule(plan.pp, stage, micro_batches);
      case PipelineSchedule::interleaved:
        break;
    }
    return interleaved_schedule(plan.pp, stage, micro_batches, plan.virtual_stages);
  };
  TaskOrder order = scheduled();
  if (plan.pp_forward_only_ranks && stage != plan.pp - 1) {
    std::erase_if(order, [](const ScheduledTask& task) { return !task.forward; });
  }
  return order;
}

}  // namespace foretrain
