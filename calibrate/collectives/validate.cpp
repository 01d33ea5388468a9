#include "calibrate/collectives/validate.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace foretrain {
namespace {

constexpr std::size_t kFolds = 4;

CollectiveSample sample_of(const CollectiveSweep& sweep, const CollectivePoint& point) {
  CollectiveSample sample;
  sample.kind = sweep.kind;
  sample.group = sweep.group;
  sample.bytes = static_cast<double>(point.bytes);
  sample.time_us = point.time_us;
  return sample;
}

double error_pct(double predicted, double measured) { return std::abs(predicted / measured - 1) * 100; }

// Number of the point's size among the sweep's distinct sizes.
std::vector<std::size_t> size_ranks(const CollectiveSweep& sweep) {
  std::vector<std::size_t> ranks;
  std::size_t rank = 0;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (i > 0 && sweep.points[i].bytes != sweep.points[i - 1].bytes) ++rank;
    ranks.push_back(rank);
  }
  return ranks;
}

// Fills held_out_us: each fold of sizes is predicted by a fit to the others.
void hold_out(CollectiveSweepResult& result, const std::vector<CollectiveSample>& samples) {
  const auto ranks = size_ranks(result.sweep);
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<CollectiveSample> kept;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (ranks[i] % kFolds != fold) kept.push_back(samples[i]);
    }
    const CollectiveFit fit = fit_collectives(kept);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (ranks[i] % kFolds == fold) result.predictions[i].held_out_us = predicted_us(fit, samples[i]);
    }
  }
  std::vector<double> errors;
  for (const auto& p : result.predictions) errors.push_back(error_pct(p.held_out_us, p.measured_us));
  result.held_out = summarize_errors(std::move(errors));
}

CollectiveSweepResult validate_sweep(const CollectiveSweep& sweep) {
  CollectiveSweepResult result;
  result.sweep = sweep;
  result.counted = sweep.distinct_sizes() >= kCountedSizes;
  std::vector<CollectiveSample> samples;
  for (const auto& point : sweep.points) samples.push_back(sample_of(sweep, point));
  result.fit = fit_collectives(samples);
  std::vector<double> errors;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const CollectiveTime way = predicted_way(result.fit, samples[i]);
    CollectivePrediction prediction;
    prediction.bytes = sweep.points[i].bytes;
    prediction.measured_us = samples[i].time_us;
    prediction.predicted_us = predicted_us(result.fit, samples[i]);
    prediction.algorithm = way.algorithm;
    prediction.protocol = way.protocol;
    result.predictions.push_back(prediction);
    errors.push_back(error_pct(prediction.predicted_us, prediction.measured_us));
  }
  result.errors = summarize_errors(std::move(errors));
  if (result.counted) hold_out(result, samples);
  return result;
}

bool one_way(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

// Errors when all counted sweeps of one machine share three parameters; counts the machines.
CollectiveErrors share_by_machine(CollectiveReport& report) {
  std::map<std::string, std::vector<CollectiveSample>> machines;
  for (const auto& result : report.sweeps) {
    if (!result.counted) continue;
    for (const auto& point : result.sweep.points) {
      CollectiveSample sample = sample_of(result.sweep, point);
      if (result.sweep.host_staged && !one_way(sample.kind)) sample.bandwidth_share = kTwoWayShare;
      machines[result.sweep.machine_key()].push_back(sample);
    }
  }
  report.machines_counted = machines.size();
  std::vector<double> errors;
  for (const auto& [key, samples] : machines) {
    const CollectiveFit fit = fit_collectives(samples);
    for (const auto& sample : samples) errors.push_back(error_pct(predicted_us(fit, sample), sample.time_us));
  }
  return summarize_errors(std::move(errors));
}

double quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

CollectiveErrors summarize_errors(std::vector<double> absolute_errors_pct) {
  CollectiveErrors errors;
  errors.n = absolute_errors_pct.size();
  if (errors.n == 0) return errors;
  std::sort(absolute_errors_pct.begin(), absolute_errors_pct.end());
  double sum = 0;
  for (const double error : absolute_errors_pct) sum += error;
  errors.mape_pct = sum / static_cast<double>(errors.n);
  errors.median_pct = quantile(absolute_errors_pct, 0.5);
  errors.p90_pct = quantile(absolute_errors_pct, 0.9);
  errors.max_pct = absolute_errors_pct.back();
  return errors;
}

CollectiveReport validate_collectives(std::span<const CollectiveSweep> sweeps) {
  CollectiveReport report;
  report.sweeps_in_table = sweeps.size();
  std::vector<double> errors, held_out;
  for (const auto& sweep : sweeps) {
    if (sweep.distinct_sizes() < kFittedSizes) continue;
    report.sweeps.push_back(validate_sweep(sweep));
    if (!report.sweeps.back().counted) continue;
    ++report.sweeps_counted;
    for (const auto& p : report.sweeps.back().predictions) {
      errors.push_back(error_pct(p.predicted_us, p.measured_us));
      held_out.push_back(error_pct(p.held_out_us, p.measured_us));
    }
  }
  report.errors = summarize_errors(std::move(errors));
  report.held_out = summarize_errors(std::move(held_out));
  report.shared = share_by_machine(report);
  return report;
}

Expected<CollectiveReport> validate_collectives(const std::string& path) {
  const auto sweeps = read_collective_sweeps(path);
  if (!sweeps) return fail(sweeps.error());
  CollectiveReport report = validate_collectives(*sweeps);
  if (report.sweeps.empty()) {
    return fail(Error{ErrorCode::input, Location{path, 0, 0, {}},
                      "has no sweep of four or more message sizes",
                      "three parameters per machine are fitted, so a sweep needs at least four sizes"});
  }
  return report;
}

}  // namespace foretrain
