// Intervals by linear propagation: with g the gradient of the step time over the profile's parameters and S
// their covariance (standard errors, and correlations where a fit gave them), Var(step time) = g' S g. The
// gradient is by differences of simulations half a standard error to each side, so that it holds on the scale
// of the uncertainty and not only next to the point.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/report/report.h"

namespace foretrain {
namespace {

constexpr double kNinetyPercent = 1.6448536269514722;  // standard deviations to each side

double bounded(ParameterId id, double value) {
  const ParameterSpec& spec = profile_parameters()[static_cast<std::size_t>(id)];
  return std::clamp(value, spec.low, spec.high);
}

// The memory constant that concerns this run, in GiB with its standard error.
double memory_error_gib(const StepProgram& program, const Profile& profile) {
  const bool amp = compute_dtype(program.training.precision) != DType::fp32;
  const ParameterId id = amp ? ParameterId::memory_constant_amp_mib : ParameterId::memory_constant_fp32_mib;
  return profile.at(id).standard_error / 1024.0;
}

// Throughput and utilisation are inversely proportional to the step time.
Interval inverse(const Interval& step_time, double at_value) {
  const auto scaled = [&](double time) { return time > 0 ? at_value * step_time.value / time : at_value; };
  return {at_value, scaled(step_time.high), scaled(step_time.low)};
}

}  // namespace

Expected<Prediction> predict(const StepProgram& program, const Simulator& simulator, const Cluster& cluster,
                             const Profile& profile, const PredictOptions& options) {
  auto result = simulator.run(profile, options.simulation);
  if (!result) return fail(std::move(result.error()));
  Prediction p = make_report(program, cluster, profile, std::move(*result));
  if (!options.intervals) return p;

  SimulationOptions bare;
  bare.fidelity = options.simulation.fidelity;
  bare.memory = false;
  // Effect of one standard error of each parameter on the step time, ms.
  std::array<double, kParameters> effect{};
  for (std::size_t i = 0; i < kParameters; ++i) {
    const auto id = static_cast<ParameterId>(i);
    const bool of_memory =
        id == ParameterId::memory_constant_fp32_mib || id == ParameterId::memory_constant_amp_mib;
    const double error = profile.at(id).standard_error;
    if (of_memory || !(error > 0)) continue;
    Profile below = profile;
    Profile above = profile;
    below.at(id).value = bounded(id, profile[id] - error / 2);
    above.at(id).value = bounded(id, profile[id] + error / 2);
    const double width = above[id] - below[id];
    if (!(width > 0)) continue;
    const auto low = simulator.run(below, bare);
    const auto high = simulator.run(above, bare);
    if (!low || !high) continue;
    effect[i] = (high->step_time.ms() - low->step_time.ms()) / width * error;
  }
  double variance = 0;
  for (const double e : effect) variance += e * e;
  const std::size_t n = profile.correlated.size();
  if (profile.correlation.size() == n * n) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b) continue;
        variance += profile.correlation[a * n + b] * effect[static_cast<std::size_t>(profile.correlated[a])] *
                    effect[static_cast<std::size_t>(profile.correlated[b])];
      }
    }
  }
  const double spread = kNinetyPercent * std::sqrt(std::max(0.0, variance));
  Interval& t = p.step_time_ms;
  // A time is positive: far to the left the interval is that of the logarithm.
  t.high = t.value + spread;
  t.low = spread < t.value / 2 ? t.value - spread : t.value * std::exp(-spread / t.value);
  p.tokens_per_s = inverse(t, p.tokens_per_s.value);
  p.mfu = inverse(t, p.mfu.value);
  p.mfu_with_attention = inverse(t, p.mfu_with_attention.value);
  p.hfu = inverse(t, p.hfu.value);
  const double memory_spread = kNinetyPercent * memory_error_gib(program, profile);
  for (Interval* m : {&p.peak_memory_gib, &p.reserved_memory_gib}) {
    m->low = std::max(0.0, m->value - memory_spread);
    m->high = m->value + memory_spread;
  }
  return p;
}

}  // namespace foretrain
