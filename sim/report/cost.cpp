#include <cmath>

#include "sim/report/report.h"

namespace foretrain {
namespace {

Interval scaled(const Interval& x, double factor) {
  return {x.value * factor, x.low * factor, x.high * factor};
}

}  // namespace

CostEstimate estimate_cost(const Prediction& prediction, const Cluster& cluster, const CostInputs& inputs) {
  CostEstimate estimate;
  if (!(inputs.tokens > 0) || !(prediction.tokens_per_step > 0)) return estimate;
  estimate.steps = std::ceil(inputs.tokens / prediction.tokens_per_step);
  estimate.hours = scaled(prediction.step_time_ms, estimate.steps / 3.6e6);
  estimate.gpu_hours = scaled(estimate.hours, static_cast<double>(prediction.gpus));
  double price = inputs.price_per_gpu_hour_usd;
  if (!(price > 0)) price = cluster.price_per_gpu_hour_usd;
  if (!(price > 0)) price = cluster.gpu.price_per_hour_usd;
  estimate.usd = scaled(estimate.gpu_hours, price);
  const RankBreakdown& mean = prediction.mean_breakdown;
  const double total = static_cast<double>(mean.total().ps());
  const double busy = total > 0 ? static_cast<double>(mean.compute.ps()) / total : 1;
  const double watts = cluster.gpu.power_w * (busy + kWaitingPowerShare * (1 - busy));
  estimate.energy_kwh = scaled(estimate.gpu_hours, watts * cluster.power_usage_effectiveness / 1000.0);
  estimate.electricity_usd = scaled(estimate.energy_kwh, inputs.electricity_usd_per_kwh);
  return estimate;
}

}  // namespace foretrain
