#include "calibrate/collectives/validate.h"

#include <map>
#include <utility>

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

std::vector<double> residuals_of(const CollectiveSweepResult& result) {
  std::vector<double> residuals;
  for (const auto& p : result.predictions) residuals.push_back(log_residual(p.predicted_us, p.measured_us));
  return residuals;
}

std::vector<double> held_out_residuals_of(const CollectiveSweepResult& result) {
  std::vector<double> residuals;
  for (const auto& p : result.predictions) residuals.push_back(log_residual(p.held_out_us, p.measured_us));
  return residuals;
}

void append(std::vector<double>& all, const std::vector<double>& some) {
  all.insert(all.end(), some.begin(), some.end());
}

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

// Fills held_out_us: each fold of sizes is predicted by a fit to the others. Returns the errors met.
Errors hold_out(CollectiveSweepResult& result, const std::vector<CollectiveSample>& samples) {
  const auto ranks = size_ranks(result.sweep);
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<CollectiveSample> kept;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (ranks[i] % kFolds != fold) kept.push_back(samples[i]);
    }
    const auto fit = fit_collectives(kept);
    if (!fit) return fit.error();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (ranks[i] % kFolds == fold) result.predictions[i].held_out_us = predicted_us(*fit, samples[i]);
    }
  }
  result.held_out = summarize_log_residuals(held_out_residuals_of(result));
  return {};
}

Expected<CollectiveSweepResult> validate_sweep(const CollectiveSweep& sweep) {
  CollectiveSweepResult result;
  result.sweep = sweep;
  result.counted = sweep.distinct_sizes() >= kCountedSizes;
  std::vector<CollectiveSample> samples;
  for (const auto& point : sweep.points) samples.push_back(sample_of(sweep, point));
  auto fit = fit_collectives(samples);
  if (!fit) return fail(std::move(fit.error()));
  result.fit = *fit;
  for (const auto& sample : samples) {
    const CollectiveTime way = predicted_way(result.fit, sample);
    CollectivePrediction prediction;
    prediction.bytes = static_cast<std::int64_t>(sample.bytes);
    prediction.measured_us = sample.time_us;
    prediction.predicted_us = predicted_us(result.fit, sample);
    prediction.algorithm = way.algorithm;
    prediction.protocol = way.protocol;
    result.predictions.push_back(prediction);
  }
  result.errors = summarize_log_residuals(residuals_of(result));
  if (result.counted) {
    Errors errors = hold_out(result, samples);
    if (!errors.empty()) return fail(std::move(errors));
  }
  return result;
}

bool one_way(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

// Fills `shared` and `machines_counted`: all counted sweeps of one machine share three parameters.
Errors share_by_machine(CollectiveReport& report) {
  std::map<std::string, std::vector<CollectiveSample>> machines;
  for (const auto& result : report.sweeps) {
    if (!result.counted) continue;
    for (const auto& point : result.sweep.points) {
      CollectiveSample sample = sample_of(result.sweep, point);
      if (result.sweep.host_staged && !one_way(sample.kind)) sample.bandwidth_share = kTwoWayShare;
      machines[result.sweep.machine_key()].push_back(sample);
    }
  }
  std::vector<double> residuals;
  for (const auto& [key, samples] : machines) {
    const auto fit = fit_collectives(samples);
    if (!fit) return fit.error();
    for (const auto& sample : samples) {
      residuals.push_back(log_residual(predicted_us(*fit, sample), sample.time_us));
    }
  }
  report.machines_counted = machines.size();
  report.shared = summarize_log_residuals(residuals);
  return {};
}

}  // namespace

Expected<CollectiveReport> validate_collectives(std::span<const CollectiveSweep> sweeps) {
  CollectiveReport report;
  report.sweeps_in_table = sweeps.size();
  std::vector<double> residuals, held_out;
  for (const auto& sweep : sweeps) {
    if (sweep.distinct_sizes() < kFittedSizes) continue;
    auto result = validate_sweep(sweep);
    if (!result) return fail(std::move(result.error()));
    if (result->counted) {
      ++report.sweeps_counted;
      append(residuals, residuals_of(*result));
      append(held_out, held_out_residuals_of(*result));
    }
    report.sweeps.push_back(std::move(*result));
  }
  report.errors = summarize_log_residuals(residuals);
  report.held_out = summarize_log_residuals(held_out);
  Errors errors = share_by_machine(report);
  if (!errors.empty()) return fail(std::move(errors));
  return report;
}

Expected<CollectiveReport> validate_collectives(const std::string& path) {
  const auto sweeps = read_collective_sweeps(path);
  if (!sweeps) return fail(sweeps.error());
  auto report = validate_collectives(*sweeps);
  if (report && report->sweeps.empty()) {
    return fail(Error{ErrorCode::input, Location{path, 0, 0, {}},
                      "has no sweep of four or more message sizes",
                      "three parameters per machine are fitted, so a sweep needs at least four sizes"});
  }
  return report;
}

}  // namespace foretrain
