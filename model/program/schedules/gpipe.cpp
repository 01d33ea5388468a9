#include "model/program/schedules/schedule.h"

namespace foretrain {

TaskOrder gpipe_schedule(std::int32_t micro_batches) {
  TaskOrder order;
  order.reserve(2 * static_cast<std::size_t>(micro_batches));
  for (const bool forward : {true, false}) {
    for (std::int32_t i = 0; i < micro_batches; ++i) order.push_back({forward, i, 0});
  }
  return order;
}

}  // namespace foretrain
