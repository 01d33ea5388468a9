// Fits the three numbers of the collective cost model to one machine's measurements: latency scale, bus
// bandwidth and protocol ratio (sim/network/collective_cost.h). Pure functions, safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "model/base/error.h"
#include "model/hardware/collective_kind.h"
#include "sim/network/collective_cost.h"

namespace foretrain {

struct CollectiveSample {
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveGroup group;
  double bytes = 0;
  double time_us = 0;
  double bandwidth_share = 1;  // known factor on the bus bandwidth for this kind of traffic
};

struct CollectiveEstimate {
  double value = 0;
  // Nothing when the parameter stands at a bound or the samples do not determine it.
  std::optional<double> standard_error;
  bool at_bound = false;
};

constexpr std::size_t kCollectiveParameters = 3;

struct CollectiveFit {
  CollectiveEstimate latency_scale;           // factor, 0.02 to 200
  CollectiveEstimate bus_bandwidth_gb_per_s;  // 0.001 to 5000
  CollectiveEstimate protocol_ratio;          // 1 to 32
  CollectiveParameters parameters() const;
};

// Least squares of log(predicted / measured) under a soft-L1 loss that turns linear at 5 % (outliers of noisy
// clusters do not pull), from four starting points (calibrate/fit/least_squares.h). Bytes and times must be
// positive. Errors (code input): no samples.
Expected<CollectiveFit> fit_collectives(std::span<const CollectiveSample> samples);

double predicted_us(const CollectiveFit& fit, const CollectiveSample& sample);
CollectiveTime predicted_way(const CollectiveFit& fit, const CollectiveSample& sample);

}  // namespace foretrain
