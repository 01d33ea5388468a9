// Robust bounded least squares: fits named parameters to observations through any deterministic function.
//
// The caller gives a function from parameter values to residuals; derivatives are taken numerically, the
// solver is Ceres' Levenberg-Marquardt with box bounds and a robust loss. Pure functions without state: safe
// from several threads as long as the caller's function is. The same input gives the same answer bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/base/error.h"

namespace foretrain {

// The scale on which a parameter is searched, differentiated and perturbed.
enum class FitScale : std::uint8_t {
  linear,
  log,    // positive quantities (times, rates, bandwidths): steps are relative; needs low > 0
  logit,  // quantities with two natural ends (fractions): the bounds are approached, never reached
};

struct FitParameter {
  std::string name;
  double initial = 0;
  double low = 0, high = 0;  // bounds, low < high; `initial` is moved inside when it lies outside
  FitScale scale = FitScale::linear;
};

// Loss of a residual r relative to scale s (the size of an ordinary error): squared for |r| << s.
enum class RobustLoss : std::uint8_t {
  none,     // r^2
  huber,    // linear beyond s
  soft_l1,  // 2 s^2 (sqrt(1 + (r/s)^2) - 1): smooth, linear for large r; fits the mean absolute error
  cauchy,   // s^2 log(1 + (r/s)^2): outliers hardly count
};

struct FitOptions {
  RobustLoss loss = RobustLoss::soft_l1;
  double loss_scale = 0.05;  // in units of the residual
  int max_iterations = 60;   // per start
  double difference =
      1e-3;        // step of the numeric derivative on the parameter's scale (linear: times max(1, |x|))
  int starts = 1;  // the given initial point and starts - 1 others spread over the bounds
  std::uint64_t seed = 1;            // of the other starts
  double function_tolerance = 1e-6;  // stops when the cost falls by less than this fraction
};

// Writes one residual per observation, usually log_residual(predicted, measured). `values` are in the order
// of the parameters and inside their bounds. Returning false rejects the point.
using ResidualFunction = std::function<bool(std::span<const double> values, std::span<double> residuals)>;

struct FitResult {
  std::vector<double> values;
  // From the covariance s^2 (J^T W J)^-1 with the weights W of the robust loss and s^2 the weighted residual
  // variance with n - p degrees of freedom, carried from the parameter's scale to its unit. Infinite when the
  // data do not determine the parameter; 0 for a parameter that ended at a bound (it is not free there).
  std::vector<double> standard_errors;
  std::vector<double> correlation;  // p x p, row-major; 0 off the diagonal where not determined
  std::vector<bool> at_bound;
  double cost = 0;  // half the sum of robust losses
  double residual_rms = 0;
  std::vector<double> residuals;  // at the solution
  // Ratio of the largest to the smallest singular value of the Jacobian on the parameters' scales; large
  // (> 1e4) means that a combination of parameters is hardly determined. Infinite when it is not at all.
  double condition = 0;
  int evaluations = 0;
  bool converged = false;  // every tolerance met; false: stopped at max_iterations
};

// ln(predicted / measured): symmetric relative error. Both positive; otherwise a large finite value.
double log_residual(double predicted, double measured);

// Fits. Errors (code input): no parameters, no residuals, bounds that do not fit the scale, the function
// rejected the initial point or gave a residual that is not finite there.
Expected<FitResult> fit_least_squares(std::span<const FitParameter> parameters, std::size_t residual_count,
                                      const ResidualFunction& function, const FitOptions& options = {});

// Deterministic folds: fold of every row, balanced within one row, shuffled with `seed`. k is cut to `rows`.
std::vector<int> fold_of_rows(std::size_t rows, int k, std::uint64_t seed = 1);

// k-fold cross-validation: `fit(train)` returns a model as parameter values, `predict(values, row)` its
// residual for one row. Returns the held-out residual of every row.
using FitRows = std::function<Expected<std::vector<double>>(std::span<const std::size_t> rows)>;
using RowResidual = std::function<double(std::span<const double> values, std::size_t row)>;
Expected<std::vector<double>> cross_validate(std::size_t rows, int k, std::uint64_t seed, const FitRows& fit,
                                             const RowResidual& predict);

// Mean, median and 90th percentile of |exp(r) - 1| in per cent for log residuals r, and the largest.
struct ErrorSummary {
  std::size_t n = 0;
  double mape_pct = 0;
  double median_pct = 0;
  double p90_pct = 0;
  double max_pct = 0;
  double bias_pct = 0;  // mean of exp(r) - 1: positive when predictions are too slow
};
ErrorSummary summarize_log_residuals(std::span<const double> residuals);

}  // namespace foretrain
