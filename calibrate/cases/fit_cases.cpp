#include "calibrate/cases/fit_cases.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace foretrain {
namespace {

bool uses_amp_constant(const Scenario& scenario) {
  return scenario.training.precision != Precision::fp32 && scenario.training.precision != Precision::tf32;
}

FitParameter fit_parameter(const ParameterSpec& spec, double value) {
  FitParameter parameter;
  parameter.name = std::string(spec.name);
  parameter.initial = value;
  parameter.low = spec.low;
  parameter.high = spec.high;
  parameter.scale = spec.low > 0 ? FitScale::log : FitScale::linear;
  return parameter;
}

const ParameterSpec& spec_of(ParameterId id) { return profile_parameters()[static_cast<std::size_t>(id)]; }

// The constant that makes the mean error of its rows zero: peaks are the sum of it and what is simulated.
Expected<bool> fit_memory_constant(const PreparedCases& cases, std::span<const std::size_t> rows,
                                   ParameterId id, Profile& profile) {
  const bool amp = id == ParameterId::memory_constant_amp_mib;
  Profile without = profile;
  without.at(id).value = 0;
  std::vector<double> missing_mib, weights;
  for (const std::size_t i : rows) {
    const MeasuredCase& measured = cases.measured(i);
    if (!measured.peak_mem_gib || uses_amp_constant(measured.scenario) != amp) continue;
    auto prediction = cases.predict(i, without, true);
    if (!prediction) return fail(std::move(prediction.error()));
    missing_mib.push_back((*measured.peak_mem_gib - prediction->peak_mem_gib) * 1024.0);
    weights.push_back(1.0 / (*measured.peak_mem_gib * *measured.peak_mem_gib));
  }
  if (missing_mib.empty()) return false;
  // Least squares of relative errors.
  double sum = 0, total = 0;
  for (std::size_t i = 0; i < missing_mib.size(); ++i) {
    sum += weights[i] * missing_mib[i];
    total += weights[i];
  }
  const ParameterSpec& spec = spec_of(id);
  ParameterValue& value = profile.at(id);
  value.value = std::clamp(sum / total, spec.low, spec.high);
  double spread = 0;
  for (std::size_t i = 0; i < missing_mib.size(); ++i) {
    spread += weights[i] * (missing_mib[i] - value.value) * (missing_mib[i] - value.value);
  }
  const double n = static_cast<double>(missing_mib.size());
  value.standard_error = n > 1 ? std::sqrt(spread / total / (n - 1)) : value.value;
  value.fitted = true;
  value.provenance = fmt::format("fit to {} peak memories", missing_mib.size());
  return true;
}

}  // namespace

bool is_memory_constant(ParameterId id) {
  return id == ParameterId::memory_constant_fp32_mib || id == ParameterId::memory_constant_amp_mib;
}

std::vector<ParameterId> fitted_parameters(const Profile& profile) {
  std::vector<ParameterId> ids;
  for (const ParameterSpec& spec : profile_parameters()) {
    if (profile.at(spec.id).fitted) ids.push_back(spec.id);
  }
  return ids;
}

Expected<CaseFit> fit_cases(const PreparedCases& cases, std::span<const std::size_t> rows,
                            const Profile& start, const CaseFitOptions& options) {
  CaseFit fit;
  fit.profile = start;
  std::vector<ParameterId> constants;
  for (const ParameterId id : options.parameters)
    (is_memory_constant(id) ? constants : fit.parameters).push_back(id);
  for (const ParameterId id : constants) {
    const auto done = fit_memory_constant(cases, rows, id, fit.profile);
    if (!done) return fail(Errors(done.error()));
  }
  if (fit.parameters.empty()) return fit;

  std::vector<std::size_t> timed;
  for (const std::size_t i : rows) {
    if (cases.measured(i).step_time_ms) timed.push_back(i);
  }
  if (timed.size() <= fit.parameters.size()) {
    return fail(
        ErrorCode::input,
        fmt::format("{} step times cannot determine {} parameters", timed.size(), fit.parameters.size()),
        "measure more cases or fit fewer parameters");
  }
  std::vector<FitParameter> parameters;
  for (const ParameterId id : fit.parameters) parameters.push_back(fit_parameter(spec_of(id), start[id]));
  Errors errors;
  const auto residuals = [&](std::span<const double> values, std::span<double> out) {
    Profile profile = fit.profile;
    for (std::size_t p = 0; p < values.size(); ++p) {
      profile.at(fit.parameters[p]).value = values[p];
      profile.at(fit.parameters[p]).provenance = "trial";
    }
    for (std::size_t r = 0; r < timed.size(); ++r) {
      auto prediction = cases.predict(timed[r], profile, false);
      if (!prediction) {
        errors = std::move(prediction.error());
        return false;
      }
      out[r] = log_residual(prediction->step_time_ms, *cases.measured(timed[r]).step_time_ms);
    }
    return true;
  };
  FitOptions fit_options;
  fit_options.loss = RobustLoss::soft_l1;
  fit_options.loss_scale = options.loss_scale;
  fit_options.max_iterations = options.max_iterations;
  fit_options.starts = options.starts;
  // Far from the solution most rows are outliers, which a robust loss would let go: least squares first.
  FitOptions coarse = fit_options;
  coarse.loss = RobustLoss::none;
  if (auto near = fit_least_squares(parameters, timed.size(), residuals, coarse)) {
    for (std::size_t p = 0; p < parameters.size(); ++p) parameters[p].initial = near->values[p];
  }
  fit_options.starts = 1;
  auto solved = fit_least_squares(parameters, timed.size(), residuals, fit_options);
  if (!solved) return fail(errors.empty() ? std::move(solved.error()) : std::move(errors));
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    ParameterValue& value = fit.profile.at(fit.parameters[p]);
    value.value = solved->values[p];
    value.standard_error = solved->standard_errors[p];
    value.fitted = true;
    value.provenance = fmt::format("fit to {} step times", timed.size());
    if (solved->at_bound[p]) fit.at_bound.push_back(fit.parameters[p]);
    if (!std::isfinite(value.standard_error)) {
      fit.not_identified.push_back(fit.parameters[p]);
      const ParameterSpec& spec = spec_of(fit.parameters[p]);
      value.standard_error = spec.high - spec.low;
    }
  }
  fit.profile.correlated = fit.parameters;
  fit.profile.correlation = solved->correlation;
  fit.condition = solved->condition;
  return fit;
}

}  // namespace foretrain
