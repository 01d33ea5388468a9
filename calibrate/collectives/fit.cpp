#include "calibrate/collectives/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "calibrate/fit/least_squares.h"
#include "sim/network/collective_cost_bounds.h"

namespace foretrain {
namespace {

using Values = std::array<double, kCollectiveParameters>;  // latency scale, GB/s, ratio

constexpr double kRobustScale = 0.05;
constexpr Values kLow{0.02, 0.001, 1.0};
constexpr Values kHigh{200.0, 5000.0, 32.0};

CollectiveParameters parameters_of(std::span<const double> values, double share) {
  CollectiveParameters parameters;
  parameters.latency_scale = values[0];
  parameters.bus_bandwidth = Bandwidth::gb_per_s(values[1] * share);
  parameters.protocol_ratio = values[2];
  return parameters;
}

double microseconds(std::span<const double> values, const CollectiveSample& sample) {
  return 1e6 *
         cost_seconds(sample.kind, sample.bytes, sample.group, parameters_of(values, sample.bandwidth_share));
}

// Latency from the second smallest message, bandwidth from the largest.
Values start_point(std::span<const CollectiveSample> samples, double ratio) {
  std::vector<const CollectiveSample*> by_size;
  for (const auto& sample : samples) by_size.push_back(&sample);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto* a, const auto* b) { return a->bytes < b->bytes; });
  const CollectiveSample& small = *by_size[std::min<std::size_t>(1, by_size.size() - 1)];
  const CollectiveSample& large = *by_size.back();
  CollectiveParameters unit;
  unit.latency_scale = 1;
  unit.bus_bandwidth = Bandwidth::gb_per_s(1e9);
  const double unit_s = cost_seconds(small.kind, small.bytes, small.group, unit);
  const double rate = bus_factor(large.kind, large.group.ranks) * large.bytes / (large.time_us * 1e-6);
  return {small.time_us * 1e-6 / unit_s, rate * 1e-9 / large.bandwidth_share, ratio};
}

std::array<FitParameter, kCollectiveParameters> fit_parameters(const Values& start) {
  return {FitParameter{"latency_scale", start[0], kLow[0], kHigh[0], FitScale::log},
          FitParameter{"bus_bandwidth_gb_per_s", start[1], kLow[1], kHigh[1], FitScale::log},
          FitParameter{"protocol_ratio", start[2], kLow[2], kHigh[2], FitScale::log}};
}

CollectiveEstimate estimate(const FitResult& result, std::size_t index, bool determined) {
  CollectiveEstimate estimate;
  estimate.value = result.values[index];
  estimate.at_bound = result.at_bound[index];
  const double error = result.standard_errors[index];
  if (determined && !estimate.at_bound && std::isfinite(error)) estimate.standard_error = error;
  return estimate;
}

Values values_of(const CollectiveFit& fit) {
  return {fit.latency_scale.value, fit.bus_bandwidth_gb_per_s.value, fit.protocol_ratio.value};
}

}  // namespace

CollectiveParameters CollectiveFit::parameters() const { return parameters_of(values_of(*this), 1.0); }

Expected<CollectiveFit> fit_collectives(std::span<const CollectiveSample> samples) {
  if (samples.empty()) return fail(ErrorCode::input, "no measurements; expected at least one");
  const auto residuals = [samples](std::span<const double> values, std::span<double> out) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      out[i] = log_residual(microseconds(values, samples[i]), samples[i].time_us);
    }
    return true;
  };
  FitOptions options;
  options.loss = RobustLoss::soft_l1;
  options.loss_scale = kRobustScale;
  options.difference = 1e-4;
  options.max_iterations = 100;
  std::optional<FitResult> best;
  for (const double ratio : {1.3, 2.0, 4.0, 8.0}) {
    const auto parameters = fit_parameters(start_point(samples, ratio));
    auto result = fit_least_squares(parameters, samples.size(), residuals, options);
    if (!result) return fail(result.error());
    if (!best || result->cost < best->cost) best = std::move(*result);
  }
  const bool determined = samples.size() > kCollectiveParameters;
  return CollectiveFit{estimate(*best, 0, determined), estimate(*best, 1, determined),
                       estimate(*best, 2, determined)};
}

double predicted_us(const CollectiveFit& fit, const CollectiveSample& sample) {
  return microseconds(values_of(fit), sample);
}

CollectiveTime predicted_way(const CollectiveFit& fit, const CollectiveSample& sample) {
  return cost(sample.kind, Bytes(static_cast<std::int64_t>(sample.bytes)), sample.group,
              parameters_of(values_of(fit), sample.bandwidth_share));
}

}  // namespace foretrain
