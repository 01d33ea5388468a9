// Transfers under way: each waits out its latency, then flows at the rate that max-min sharing with
// everything else in flight gives it, until its work is done. Rates are solved once per instant at which
// something changed. Owned by one run; not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"
#include "sim/kernel/event_queue.h"
#include "sim/sharing/fair_share.h"

namespace foretrain {

// What one exchange costs on the idle network, ready to be shared.
struct ExchangeCost {
  Time latency;
  double work_bytes = 0;
  double rate_cap_bytes_per_s = 0;  // <= 0: none
  std::vector<FairShare::Use> uses;
};

class Activities {
 public:
  // Events of kinds flow_kind (latency over) and end_kind are pushed on `queue` with the activity's handle in
  // `a` and a generation; both outlive this object.
  Activities(const std::vector<double>& capacities, EventQueue& queue, std::int32_t flow_kind,
             std::int32_t end_kind);

  // Starts one at `now`; the cost must outlive it. The handle is free again after finish().
  std::int32_t start(const ExchangeCost& cost, Time now);
  // Whether an event of the two kinds is out of date.
  bool overtaken(const Event& event) const;
  void begin_flow(std::int32_t activity, Time now);
  // To be called at the end event.
  void finish(std::int32_t activity);

  bool unsettled() const { return unsettled_; }
  // Solves rates for everything that changed at `now` and schedules the new ends.
  void settle(Time now);
  // Activities that are under way but get no bandwidth.
  std::int32_t stalled() const;

 private:
  struct Activity {
    const ExchangeCost* cost = nullptr;
    double remaining_bytes = 0;
    double rate_bytes_per_s = 0;
    Time since;  // when remaining_bytes was true
    std::int32_t share = -1;
    std::int32_t generation = 0;
    bool live = false;
  };

  FairShare sharing_;
  EventQueue& queue_;
  std::int32_t flow_kind_, end_kind_;
  std::vector<Activity> activities_;
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> of_share_;  // activity of a handle of sharing_
  bool unsettled_ = false;
};

}  // namespace foretrain
