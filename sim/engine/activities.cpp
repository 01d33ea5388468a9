#include "sim/engine/activities.h"

#include <algorithm>
#include <cmath>

namespace foretrain {

Activities::Activities(const std::vector<double>& capacities, EventQueue& queue, std::int32_t flow_kind,
                       std::int32_t end_kind)
    : sharing_(capacities), queue_(queue), flow_kind_(flow_kind), end_kind_(end_kind) {}

std::int32_t Activities::start(const ExchangeCost& cost, Time now) {
  std::int32_t handle;
  if (free_.empty()) {
    handle = static_cast<std::int32_t>(activities_.size());
    activities_.emplace_back();
  } else {
    handle = free_.back();
    free_.pop_back();
  }
  Activity& activity = activities_[static_cast<std::size_t>(handle)];
  activity.cost = &cost;
  activity.remaining_bytes = cost.work_bytes;
  activity.rate_bytes_per_s = 0;
  activity.since = now;
  activity.share = -1;
  activity.live = true;
  ++activity.generation;
  const bool flows = cost.work_bytes > 0;
  queue_.push(now + cost.latency, flows ? EventPriority::start : EventPriority::finish,
              flows ? flow_kind_ : end_kind_, handle, 0, activity.generation);
  return handle;
}

bool Activities::overtaken(const Event& event) const {
  const Activity& activity = activities_[static_cast<std::size_t>(event.a)];
  return !activity.live || activity.generation != event.generation;
}

void Activities::begin_flow(std::int32_t handle, Time now) {
  Activity& activity = activities_[static_cast<std::size_t>(handle)];
  activity.since = now;
  activity.share = sharing_.add(activity.cost->uses, 1.0, activity.cost->rate_cap_bytes_per_s);
  if (static_cast<std::size_t>(activity.share) >= of_share_.size()) {
    of_share_.resize(static_cast<std::size_t>(activity.share) + 1, -1);
  }
  of_share_[static_cast<std::size_t>(activity.share)] = handle;
  unsettled_ = true;
}

void Activities::finish(std::int32_t handle) {
  Activity& activity = activities_[static_cast<std::size_t>(handle)];
  if (activity.share >= 0) {
    sharing_.remove(activity.share);
    unsettled_ = true;
  }
  activity.live = false;
  free_.push_back(handle);
}

void Activities::settle(Time now) {
  unsettled_ = false;
  for (const std::int32_t share : sharing_.solve()) {
    const std::int32_t handle = of_share_[static_cast<std::size_t>(share)];
    Activity& activity = activities_[static_cast<std::size_t>(handle)];
    if (!activity.live || activity.share != share) continue;
    if (now > activity.since) {
      const double moved = activity.rate_bytes_per_s * (now - activity.since).seconds();
      activity.remaining_bytes = std::max(0.0, activity.remaining_bytes - moved);
    }
    activity.since = now;
    activity.rate_bytes_per_s = sharing_.rate(share);
    ++activity.generation;
    if (!(activity.rate_bytes_per_s > 0)) continue;  // waits until something leaves
    Time left;
    if (std::isfinite(activity.rate_bytes_per_s)) {
      left = detail::ceil_ps(activity.remaining_bytes / activity.rate_bytes_per_s);
    }
    if (left > Time::max() - now) continue;
    queue_.push(now + left, EventPriority::finish, end_kind_, handle, 0, activity.generation);
  }
}

std::int32_t Activities::stalled() const {
  std::int32_t count = 0;
  for (const Activity& activity : activities_) {
    if (activity.live) ++count;
  }
  return count;
}

}  // namespace foretrain
