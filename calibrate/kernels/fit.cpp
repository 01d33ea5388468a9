#include "calibrate/kernels/fit.h"

#include <algorithm>
#include <string>

#include "calibrate/fit/least_squares.h"

namespace foretrain {
namespace {

using enum KernelParameterId;

constexpr std::size_t kMostParameters = 7;
constexpr int kStarts = 4;
constexpr double kLossScale = 0.03;  // errors beyond this count by their size, not their square

// Between the extremes of what was ever measured.
double neutral_start(KernelParameterId id) {
  switch (id) {
    case tile_efficiency:
      return 0.9;
    case operand_cost:
      return 0.2;
    case tile_overhead_us:
      return 2;
    case memory_efficiency:
      return 0.75;
    case launch_us:
      return 4;
    case sustained_rate:
      return 0.8;
    case power_window_us:
      return 50;
    case k_step_latency_us:
      return 0.3;
    case overlapped_output:
      return 0.6;
    case softmax_cycles:
      return 0.15;
    case wide_head_slowdown:
    case count:
      break;
  }
  return 1;
}

}  // namespace

std::vector<KernelParameterId> parameters_to_fit(const KernelParameterSet& set, std::size_t rows) {
  std::vector<KernelParameterId> fitted(set.fitted.begin(), set.fitted.end());
  const std::size_t most = std::min(kMostParameters, rows / kRowsPerParameter);
  if (fitted.size() > most) fitted.resize(most);
  return fitted;
}

Expected<KernelFit> fit_kernel(std::span<const KernelRow> rows, const KernelParameterSet& set,
                               std::span<const KernelParameterId> fitted) {
  std::vector<FitParameter> parameters;
  for (const KernelParameterId id : fitted) {
    const KernelParameterSpec& spec = spec_of(id);
    parameters.push_back({std::string(spec.name), neutral_start(id), spec.low, spec.high, FitScale::log});
  }
  const auto with = [&](std::span<const double> values) {
    KernelParameters all = set.parameters;
    for (std::size_t i = 0; i < fitted.size(); ++i) all[fitted[i]] = values[i];
    return all;
  };
  const ResidualFunction residuals = [&](std::span<const double> values, std::span<double> out) {
    const KernelParameters all = with(values);
    for (std::size_t i = 0; i < rows.size(); ++i)
      out[i] = predicted_us(rows[i], all) / rows[i].measured_us - 1;
    return true;
  };
  FitOptions options;
  options.loss = RobustLoss::soft_l1;
  options.loss_scale = kLossScale;
  options.starts = kStarts;
  options.difference = 1e-2;  // the choice of tile makes the function angular on smaller scales
  Expected<FitResult> found = fit_least_squares(parameters, rows.size(), residuals, options);
  if (!found) return fail(std::move(found.error()));
  KernelFit fit;
  fit.parameters = with(found->values);
  for (std::size_t i = 0; i < fitted.size(); ++i)
    fit.estimates.push_back({fitted[i], found->values[i], found->standard_errors[i], found->at_bound[i]});
  return fit;
}

}  // namespace foretrain
