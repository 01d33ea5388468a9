#include "calibrate/collectives/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ceres/ceres.h>
#include <Eigen/Dense>

#include "sim/network/collective_cost_bounds.h"

namespace foretrain {
namespace {

using Logs = std::array<double, kCollectiveParameters>;  // of scale, GB/s, ratio

constexpr double kRobustScale = 0.05;
constexpr Logs kLow{0.02, 0.001, 1.0};
constexpr Logs kHigh{200.0, 5000.0, 32.0};

CollectiveParameters parameters_of(const double* logs, double share) {
  CollectiveParameters parameters;
  parameters.latency_scale = std::exp(logs[0]);
  parameters.bus_bandwidth = Bandwidth::gb_per_s(std::exp(logs[1]) * share);
  parameters.protocol_ratio = std::exp(logs[2]);
  return parameters;
}

double seconds(const double* logs, const CollectiveSample& sample) {
  return cost_seconds(sample.kind, sample.bytes, sample.group, parameters_of(logs, sample.bandwidth_share));
}

double log_error(const double* logs, const CollectiveSample& sample) {
  return std::log(seconds(logs, sample) / (sample.time_us * 1e-6));
}

struct LogError {
  const CollectiveSample* sample;
  bool operator()(const double* logs, double* residual) const {
    *residual = log_error(logs, *sample);
    return std::isfinite(*residual);
  }
};

// Latency from the three smallest messages, bandwidth from the largest.
Logs start_point(std::span<const CollectiveSample> samples, double ratio) {
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
  Logs logs{small.time_us * 1e-6 / unit_s, rate * 1e-9 / large.bandwidth_share, ratio};
  for (std::size_t i = 0; i < logs.size(); ++i) {
    logs[i] = std::log(std::clamp(logs[i], kLow[i] * 1.001, kHigh[i] * 0.999));
  }
  return logs;
}

double solve(std::span<const CollectiveSample> samples, Logs& logs) {
  ceres::Problem problem;
  for (const auto& sample : samples) {
    auto* cost = new ceres::NumericDiffCostFunction<LogError, ceres::CENTRAL, 1, kCollectiveParameters>(
        new LogError{&sample});
    problem.AddResidualBlock(cost, new ceres::SoftLOneLoss(kRobustScale), logs.data());
  }
  for (std::size_t i = 0; i < logs.size(); ++i) {
    problem.SetParameterLowerBound(logs.data(), static_cast<int>(i), std::log(kLow[i]));
    problem.SetParameterUpperBound(logs.data(), static_cast<int>(i), std::log(kHigh[i]));
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 100;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  return summary.IsSolutionUsable() ? summary.final_cost : std::numeric_limits<double>::infinity();
}

std::array<CollectiveEstimate, kCollectiveParameters> estimates(std::span<const CollectiveSample> samples,
                                                                const Logs& logs) {
  std::array<CollectiveEstimate, kCollectiveParameters> result;
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    result[i].value = std::exp(logs[i]);
    result[i].at_bound = result[i].value <= kLow[i] * 1.0001 || result[i].value >= kHigh[i] * 0.9999;
    if (!result[i].at_bound) free.push_back(i);
  }
  const auto m = static_cast<Eigen::Index>(free.size());
  const double spare = static_cast<double>(samples.size()) - static_cast<double>(kCollectiveParameters);
  if (m == 0 || spare <= 0) return result;

  constexpr double kStep = 1e-4;
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(m, m);
  double weighted_squares = 0;
  for (const auto& sample : samples) {
    const double residual = log_error(logs.data(), sample);
    const double scaled = residual / kRobustScale;
    const double weight = 1 / std::sqrt(1 + scaled * scaled);  // derivative of the soft-L1 loss
    weighted_squares += weight * residual * residual;
    Eigen::VectorXd row(m);
    for (Eigen::Index j = 0; j < m; ++j) {
      Logs up = logs, down = logs;
      up[free[static_cast<std::size_t>(j)]] += kStep;
      down[free[static_cast<std::size_t>(j)]] -= kStep;
      row[j] = (log_error(up.data(), sample) - log_error(down.data(), sample)) / (2 * kStep);
    }
    normal += weight * row * row.transpose();
  }
  const Eigen::FullPivLU<Eigen::MatrixXd> lu(normal);
  if (!lu.isInvertible()) return result;
  const Eigen::MatrixXd covariance = lu.inverse() * (weighted_squares / spare);
  for (Eigen::Index j = 0; j < m; ++j) {
    CollectiveEstimate& estimate = result[free[static_cast<std::size_t>(j)]];
    const double relative = std::sqrt(covariance(j, j));
    if (std::isfinite(relative)) estimate.standard_error = estimate.value * relative;
  }
  return result;
}

Logs logs_of(const CollectiveFit& fit) {
  return {std::log(fit.latency_scale.value), std::log(fit.bus_bandwidth_gb_per_s.value),
          std::log(fit.protocol_ratio.value)};
}

}  // namespace

CollectiveParameters CollectiveFit::parameters() const { return parameters_of(logs_of(*this).data(), 1.0); }

CollectiveFit fit_collectives(std::span<const CollectiveSample> samples) {
  Logs best = start_point(samples, 2.0);
  double best_cost = std::numeric_limits<double>::infinity();
  for (const double ratio : {1.3, 2.0, 4.0, 8.0}) {
    Logs logs = start_point(samples, ratio);
    const double cost = solve(samples, logs);
    if (cost < best_cost) {
      best_cost = cost;
      best = logs;
    }
  }
  const auto estimated = estimates(samples, best);
  return {estimated[0], estimated[1], estimated[2]};
}

double predicted_us(const CollectiveFit& fit, const CollectiveSample& sample) {
  return seconds(logs_of(fit).data(), sample) * 1e6;
}

CollectiveTime predicted_way(const CollectiveFit& fit, const CollectiveSample& sample) {
  return cost(sample.kind, Bytes(static_cast<std::int64_t>(sample.bytes)), sample.group,
              parameters_of(logs_of(fit).data(), sample.bandwidth_share));
}

}  // namespace foretrain
