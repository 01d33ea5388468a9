#include "calibrate/cases/validate_cases.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

namespace foretrain {
namespace {

CaseError error_of(double predicted, double measured) {
  return CaseError{predicted, measured, 100.0 * (predicted / measured - 1.0), std::nullopt};
}

std::optional<ErrorStatistics> held_out_statistics(const std::vector<ValidatedCase>& cases,
                                                   std::optional<CaseError> ValidatedCase::*member) {
  std::vector<double> errors;
  for (const ValidatedCase& c : cases) {
    if ((c.*member) && (c.*member)->held_out_error_pct) errors.push_back(*(c.*member)->held_out_error_pct);
  }
  if (errors.empty()) return std::nullopt;
  return statistics_of(errors);
}

// Refits without row i and predicts it.
Expected<CasePrediction> held_out(const PreparedCases& cases, const Profile& profile,
                                  const std::vector<ParameterId>& fitted, std::size_t i) {
  std::vector<std::size_t> others;
  for (std::size_t j = 0; j < cases.size(); ++j) {
    if (j != i) others.push_back(j);
  }
  CaseFitOptions options;
  options.parameters = fitted;
  auto fit = fit_cases(cases, others, profile, options);
  if (!fit) return fail(std::move(fit.error()));
  return cases.predict(i, fit->profile, true);
}

}  // namespace

ErrorStatistics statistics_of(const std::vector<double>& errors) {
  ErrorStatistics statistics;
  statistics.n = errors.size();
  for (const double e : errors) {
    statistics.mape_pct += std::abs(e);
    statistics.bias_pct += e;
    statistics.max_abs_pct = std::max(statistics.max_abs_pct, std::abs(e));
  }
  if (!errors.empty()) {
    statistics.mape_pct /= static_cast<double>(errors.size());
    statistics.bias_pct /= static_cast<double>(errors.size());
  }
  return statistics;
}

Expected<CaseValidation> validate_cases(const PreparedCases& cases, const Profile& profile,
                                        const ValidateOptions& options) {
  CaseValidation validation;
  validation.profile = profile;
  validation.fitted = fitted_parameters(profile);
  std::vector<double> time_errors, memory_errors;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    auto prediction = cases.predict(i, profile, true);
    if (!prediction) return fail(std::move(prediction.error()));
    const MeasuredCase& measured = cases.measured(i);
    ValidatedCase entry;
    entry.name = measured.name;
    entry.warnings = cases.program(i).warnings;
    if (measured.step_time_ms) {
      entry.step_time_ms = error_of(prediction->step_time_ms, *measured.step_time_ms);
      time_errors.push_back(entry.step_time_ms->error_pct);
      entry.tokens_per_s = *measured.tokens_per_s * *measured.step_time_ms / prediction->step_time_ms;
    }
    if (measured.peak_mem_gib) {
      entry.peak_mem_gib = error_of(prediction->peak_mem_gib, *measured.peak_mem_gib);
      memory_errors.push_back(entry.peak_mem_gib->error_pct);
    }
    for (const std::string& warning : entry.warnings) {
      if (std::find(validation.warnings.begin(), validation.warnings.end(), warning) ==
          validation.warnings.end()) {
        validation.warnings.push_back(warning);
      }
    }
    validation.cases.push_back(std::move(entry));
  }
  validation.step_time = statistics_of(time_errors);
  validation.peak_mem = statistics_of(memory_errors);
  if (!options.leave_one_out || validation.fitted.empty() || cases.size() < 3) return validation;

  // Rows are independent refits; threads take the next one, results land by index.
  std::vector<Expected<CasePrediction>> results(cases.size(), CasePrediction{});
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++) {
      results[i] = held_out(cases, profile, validation.fitted, i);
      if (options.progress) options.progress();
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t threads = std::min<std::size_t>(
      options.threads > 0 ? static_cast<std::size_t>(options.threads) : cores, cases.size());
  std::vector<std::thread> pool;
  for (std::size_t t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!results[i]) return fail(std::move(results[i].error()));
    ValidatedCase& entry = validation.cases[i];
    if (entry.step_time_ms) {
      entry.step_time_ms->held_out_error_pct =
          100.0 * (results[i]->step_time_ms / entry.step_time_ms->measured - 1.0);
    }
    if (entry.peak_mem_gib) {
      entry.peak_mem_gib->held_out_error_pct =
          100.0 * (results[i]->peak_mem_gib / entry.peak_mem_gib->measured - 1.0);
    }
  }
  validation.step_time_held_out = held_out_statistics(validation.cases, &ValidatedCase::step_time_ms);
  validation.peak_mem_held_out = held_out_statistics(validation.cases, &ValidatedCase::peak_mem_gib);
  return validation;
}

}  // namespace foretrain
