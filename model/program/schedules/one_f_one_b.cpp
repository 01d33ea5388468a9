#include <algorithm>

#include "model/program/schedules/schedule.h"

namespace foretrain {

TaskOrder one_f_one_b_schedule(std::int32_t stages, std::int32_t stage, std::int32_t micro_batches) {
  const std::int32_t warm_up = std::min(micro_batches, stages - stage - 1);
  TaskOrder order;
  order.reserve(2 * static_cast<std::size_t>(micro_batches));
  for (std::int32_t i = 0; i < warm_up; ++i) order.push_back({true, i, 0});
  for (std::int32_t i = warm_up; i < micro_batches; ++i) {
    order.push_back({true, i, 0});
    order.push_back({false, i - warm_up, 0});
  }
  for (std::int32_t i = micro_batches - warm_up; i < micro_batches; ++i) order.push_back({false, i, 0});
  return order;
}

}  // namespace foretrain
