// What everything in a prepared program costs under one profile. Made at the start of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "model/hardware/profile.h"
#include "sim/device/op_cost.h"
#include "sim/engine/activities.h"
#include "sim/engine/prepared.h"
#include "sim/engine/simulate.h"

namespace foretrain {

struct RunCosts {
  std::vector<CostedList> lists;        // by op list
  std::vector<ExchangeCost> exchanges;  // by exchange
  std::vector<double> capacities;       // by network constraint, bytes/s
  std::vector<Time> lower_bounds;       // by exchange
  std::int64_t host_per_collective_ps = 0;
  std::int64_t host_per_op_ps = 0;
  Bandwidth copy_bandwidth;  // between host memory and one GPU
  Time copy_latency;
  double rate_beside_communication = 1;  // of device work while communication is under way
};

// Errors: a rank's work or one transfer alone takes longer than the clock reaches (106 days).
Errors check_range(const Prepared& prepared, const RunCosts& costs);

RunCosts make_costs(const Prepared& prepared, const Profile& profile, Fidelity fidelity);

}  // namespace foretrain
