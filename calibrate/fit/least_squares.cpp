#include "calibrate/fit/least_squares.h"

#include <ceres/ceres.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "calibrate/fit/scale.h"

namespace foretrain {
namespace {

constexpr double kRejected = 1e3;   // residual written for a point that the function rejects
constexpr double kAtBound = 1e-6;   // distance to a bound, relative to the width, that counts as being there
constexpr double kSingular = 1e-9;  // singular values below this fraction of the largest are zero

// splitmix64: one counter-based stream, the same on every platform.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::unique_ptr<ceres::LossFunction> make_loss(const FitOptions& options) {
  switch (options.loss) {
    case RobustLoss::none:
      return nullptr;
    case RobustLoss::huber:
      return std::make_unique<ceres::HuberLoss>(options.loss_scale);
    case RobustLoss::soft_l1:
      return std::make_unique<ceres::SoftLOneLoss>(options.loss_scale);
    case RobustLoss::cauchy:
      return std::make_unique<ceres::CauchyLoss>(options.loss_scale);
  }
  return nullptr;
}

// Residuals and their derivatives at one point, computed for all rows at once and read by the row functions.
class Evaluation : public ceres::EvaluationCallback {
 public:
  Evaluation(std::span<const FitParameter> parameters, std::size_t rows, const ResidualFunction& function,
             double difference)
      : parameters_(parameters),
        function_(function),
        difference_(difference),
        point(parameters.size()),
        residuals(rows),
        jacobian(rows * parameters.size()),
        values_(parameters.size()),
        low_side_(rows),
        high_side_(rows) {}

  void PrepareForEvaluation(bool with_jacobians, bool new_point) final {
    if (new_point || !have_residuals_) {
      accepted = evaluate(point, residuals);
      have_residuals_ = true;
      have_jacobian_ = false;
    }
    if (with_jacobians && !have_jacobian_) {
      differentiate();
      have_jacobian_ = true;
    }
  }

  // Central differences, one-sided at a bound.
  void differentiate() {
    std::vector<double> moved = point;
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      const FitParameter& parameter = parameters_[p];
      const double scale = parameter.scale == FitScale::linear ? std::max(1.0, std::abs(point[p])) : 1.0;
      const double step = std::min(difference_ * scale, 0.25 * search_width(parameter));
      const double low = std::max(point[p] - step, search_low(parameter));
      const double high = std::min(point[p] + step, search_high(parameter));
      moved[p] = low;
      const bool low_ok = evaluate(moved, low_side_);
      moved[p] = high;
      const bool high_ok = evaluate(moved, high_side_);
      moved[p] = point[p];
      // A rejected side is replaced by the centre.
      const std::vector<double>& left = low_ok ? low_side_ : residuals;
      const std::vector<double>& right = high_ok ? high_side_ : residuals;
      const double width = (high_ok ? high : point[p]) - (low_ok ? low : point[p]);
      for (std::size_t row = 0; row < residuals.size(); ++row)
        jacobian[row * parameters_.size() + p] = width > 0 ? (right[row] - left[row]) / width : 0.0;
    }
  }

  void move_to(const std::vector<double>& where) {
    point = where;
    have_residuals_ = false;
    PrepareForEvaluation(true, true);
  }

 private:
  bool evaluate(const std::vector<double>& where, std::vector<double>& out) {
    ++evaluations;
    for (std::size_t p = 0; p < parameters_.size(); ++p) values_[p] = to_value(parameters_[p], where[p]);
    bool ok = function_(values_, out);
    for (double r : out) ok = ok && std::isfinite(r);
    if (!ok) std::fill(out.begin(), out.end(), kRejected);
    return ok;
  }

  std::span<const FitParameter> parameters_;
  const ResidualFunction& function_;
  double difference_;

 public:
  std::vector<double> point;  // on the parameters' scales; the solver moves it
  std::vector<double> residuals;
  std::vector<double> jacobian;  // rows x parameters
  bool accepted = false;
  int evaluations = 0;

 private:
  std::vector<double> values_, low_side_, high_side_;
  bool have_residuals_ = false, have_jacobian_ = false;
};

class RowFunction : public ceres::CostFunction {
 public:
  RowFunction(const Evaluation& evaluation, std::size_t row, std::size_t parameters)
      : evaluation_(evaluation), row_(row), parameters_(parameters) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->push_back(static_cast<int>(parameters));
  }
  bool Evaluate(double const* const*, double* residuals, double** jacobians) const final {
    residuals[0] = evaluation_.residuals[row_];
    if (jacobians != nullptr && jacobians[0] != nullptr)
      std::copy_n(evaluation_.jacobian.begin() + static_cast<std::ptrdiff_t>(row_ * parameters_), parameters_,
                  jacobians[0]);
    return true;
  }

 private:
  const Evaluation& evaluation_;
  std::size_t row_, parameters_;
};

struct Solution {
  std::vector<double> point;
  double cost = std::numeric_limits<double>::infinity();
  bool converged = false;
};

bool stands_at_bound(const FitParameter& parameter, double coordinate) {
  const double margin = kAtBound * search_width(parameter);
  return coordinate <= search_low(parameter) + margin || coordinate >= search_high(parameter) - margin;
}

// Moves the parameters that are not `held`.
Solution solve_from(std::span<const FitParameter> parameters, Evaluation& evaluation,
                    const std::vector<double>& start, const std::vector<int>& held, const FitOptions& options,
                    ceres::LossFunction* loss) {
  evaluation.point = start;
  ceres::Problem::Options ownership;
  ownership.loss_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ownership.evaluation_callback = &evaluation;
  ceres::Problem problem(ownership);
  double* const point = evaluation.point.data();
  for (std::size_t row = 0; row < evaluation.residuals.size(); ++row)
    problem.AddResidualBlock(new RowFunction(evaluation, row, parameters.size()), loss, point);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    problem.SetParameterLowerBound(point, static_cast<int>(p), search_low(parameters[p]));
    problem.SetParameterUpperBound(point, static_cast<int>(p), search_high(parameters[p]));
  }
  if (!held.empty())
    problem.SetManifold(point, new ceres::SubsetManifold(static_cast<int>(parameters.size()), held));
  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_QR;
  solver.max_num_iterations = options.max_iterations;
  solver.function_tolerance = options.function_tolerance;
  solver.num_threads = 1;
  solver.logging_type = ceres::SILENT;
  solver.minimizer_progress_to_stdout = false;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &problem, &summary);
  return {evaluation.point, summary.final_cost, summary.termination_type == ceres::CONVERGENCE};
}

// Steps that a bound cuts off stall early: what ended at a bound is held there and the others go on.
Solution solve_within_bounds(std::span<const FitParameter> parameters, Evaluation& evaluation,
                             const std::vector<double>& start, const FitOptions& options,
                             ceres::LossFunction* loss) {
  Solution best = solve_from(parameters, evaluation, start, {}, options, loss);
  for (std::size_t round = 0; round < parameters.size(); ++round) {
    std::vector<int> held;
    for (std::size_t p = 0; p < parameters.size(); ++p)
      if (stands_at_bound(parameters[p], best.point[p])) held.push_back(static_cast<int>(p));
    if (held.empty() || held.size() == parameters.size()) break;
    Solution next = solve_from(parameters, evaluation, best.point, held, options, loss);
    if (!(next.cost < best.cost * (1 - options.function_tolerance))) break;
    best = std::move(next);
  }
  return best;
}

// rho'(r^2): the weight of a residual under the loss.
double weight_of(const ceres::LossFunction* loss, double residual) {
  if (loss == nullptr) return 1.0;
  double rho[3];
  loss->Evaluate(residual * residual, rho);
  return rho[1];
}

void add_uncertainty(std::span<const FitParameter> parameters, const Evaluation& evaluation,
                     const ceres::LossFunction* loss, FitResult& result) {
  const std::size_t p = parameters.size(), rows = evaluation.residuals.size();
  result.standard_errors.assign(p, 0.0);
  result.correlation.assign(p * p, 0.0);
  for (std::size_t i = 0; i < p; ++i) result.correlation[i * p + i] = 1.0;
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < p; ++i)
    if (!result.at_bound[i]) free.push_back(i);
  if (free.empty()) return;

  const auto n = static_cast<Eigen::Index>(rows), f = static_cast<Eigen::Index>(free.size());
  Eigen::MatrixXd weighted(n, f);
  double weighted_squares = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double r = evaluation.residuals[row], w = weight_of(loss, r);
    weighted_squares += w * r * r;
    for (std::size_t c = 0; c < free.size(); ++c)
      weighted(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(c)) =
          std::sqrt(w) * evaluation.jacobian[row * p + free[c]];
  }
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(weighted, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::VectorXd& singular = svd.singularValues();
  const double largest = singular.size() > 0 ? singular(0) : 0.0;
  const bool enough_rows = rows > free.size();
  const double variance = enough_rows ? weighted_squares / static_cast<double>(rows - free.size())
                                      : std::numeric_limits<double>::infinity();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  result.condition = largest > 0 && singular.size() == f && singular(f - 1) > kSingular * largest
                         ? largest / singular(f - 1)
                         : kInfinite;

  Eigen::MatrixXd inverse = Eigen::MatrixXd::Zero(f, f);
  std::vector<bool> undetermined(free.size(), !enough_rows);
  for (Eigen::Index s = 0; s < f; ++s) {
    const bool zero = s >= singular.size() || !(singular(s) > kSingular * largest);
    for (Eigen::Index c = 0; c < f; ++c)
      if (zero && std::abs(svd.matrixV()(c, std::min(s, svd.matrixV().cols() - 1))) > 1e-3)
        undetermined[static_cast<std::size_t>(c)] = true;
    if (!zero)
      inverse += svd.matrixV().col(s) * svd.matrixV().col(s).transpose() / (singular(s) * singular(s));
  }
  for (std::size_t a = 0; a < free.size(); ++a) {
    const auto ia = static_cast<Eigen::Index>(a);
    const double spread = std::sqrt(variance * inverse(ia, ia));
    result.standard_errors[free[a]] =
        undetermined[a] ? kInfinite : spread * value_slope(parameters[free[a]], evaluation.point[free[a]]);
    for (std::size_t b = 0; b < free.size(); ++b) {
      const auto ib = static_cast<Eigen::Index>(b);
      const double norm = std::sqrt(inverse(ia, ia) * inverse(ib, ib));
      if (a != b && !undetermined[a] && !undetermined[b] && norm > 0)
        result.correlation[free[a] * p + free[b]] = inverse(ia, ib) / norm;
    }
  }
}

Errors check(std::span<const FitParameter> parameters, std::size_t residual_count) {
  Errors errors;
  const auto bad = [&](std::string message) {
    errors.push_back(Error{ErrorCode::input, {}, std::move(message), {}});
  };
  if (parameters.empty()) bad("nothing to fit: no parameters");
  if (residual_count == 0) bad("nothing to fit to: no observations");
  for (const FitParameter& parameter : parameters) {
    if (!(parameter.low < parameter.high) || !std::isfinite(parameter.low) || !std::isfinite(parameter.high))
      bad("parameter " + parameter.name + " has bounds that are not finite or not in order");
    else if (parameter.scale == FitScale::log && !(parameter.low > 0))
      bad("parameter " + parameter.name + " is searched by its logarithm; its lower bound must be above 0");
    if (!std::isfinite(parameter.initial))
      bad("parameter " + parameter.name + " starts at a value that is not finite");
  }
  return errors;
}

}  // namespace

double log_residual(double predicted, double measured) {
  if (!(predicted > 0) || !(measured > 0)) return 50.0;
  return std::log(predicted / measured);
}

Expected<FitResult> fit_least_squares(std::span<const FitParameter> parameters, std::size_t residual_count,
                                      const ResidualFunction& function, const FitOptions& options) {
  if (Errors errors = check(parameters, residual_count); !errors.empty()) return fail(std::move(errors));
  const std::unique_ptr<ceres::LossFunction> loss = make_loss(options);
  Evaluation evaluation(parameters, residual_count, function, options.difference);

  std::vector<double> initial(parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    initial[p] = to_search(parameters[p], parameters[p].initial);
  evaluation.move_to(initial);
  if (!evaluation.accepted)
    return fail(ErrorCode::input, "the model cannot be evaluated at the initial parameters of the fit");

  std::uint64_t random = options.seed;
  Solution best;
  for (int start = 0; start < std::max(1, options.starts); ++start) {
    std::vector<double> from = initial;
    if (start > 0)
      for (std::size_t p = 0; p < parameters.size(); ++p) {
        const double share = (static_cast<double>(next_random(random) >> 11) + 0.5) * 0x1.0p-53;
        from[p] = start_point(parameters[p], share);
      }
    Solution found = solve_within_bounds(parameters, evaluation, from, options, loss.get());
    if (found.cost < best.cost) best = std::move(found);
  }

  FitResult result;
  if (best.point.empty()) best.point = initial;
  evaluation.move_to(best.point);
  result.cost = 0;
  for (double r : evaluation.residuals) {
    double rho[3] = {r * r, 1, 0};
    if (loss) loss->Evaluate(r * r, rho);
    result.cost += 0.5 * rho[0];
    result.residual_rms += r * r;
  }
  result.residual_rms = std::sqrt(result.residual_rms / static_cast<double>(residual_count));
  result.residuals = evaluation.residuals;
  result.converged = best.converged;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    result.values.push_back(to_value(parameters[p], best.point[p]));
    result.at_bound.push_back(stands_at_bound(parameters[p], best.point[p]));
  }
  add_uncertainty(parameters, evaluation, loss.get(), result);
  result.evaluations = evaluation.evaluations;
  return result;
}

std::vector<int> fold_of_rows(std::size_t rows, int k, std::uint64_t seed) {
  const std::size_t folds =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::max(1, k)), 1, std::max<std::size_t>(rows, 1));
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t random = seed;
  for (std::size_t i = rows; i > 1; --i) std::swap(order[i - 1], order[next_random(random) % i]);
  std::vector<int> fold(rows);
  for (std::size_t i = 0; i < rows; ++i) fold[order[i]] = static_cast<int>(i % folds);
  return fold;
}

Expected<std::vector<double>> cross_validate(std::size_t rows, int k, std::uint64_t seed, const FitRows& fit,
                                             const RowResidual& predict) {
  if (rows < 2) return fail(ErrorCode::input, "cross-validation needs at least two observations");
  if (k < 2) return fail(ErrorCode::usage, "cross-validation needs at least two folds");
  const std::vector<int> fold = fold_of_rows(rows, k, seed);
  const int folds = *std::max_element(fold.begin(), fold.end()) + 1;
  std::vector<double> held_out(rows);
  for (int f = 0; f < folds; ++f) {
    std::vector<std::size_t> train;
    for (std::size_t row = 0; row < rows; ++row)
      if (fold[row] != f) train.push_back(row);
    Expected<std::vector<double>> values = fit(train);
    if (!values) return fail(std::move(values.error()));
    for (std::size_t row = 0; row < rows; ++row)
      if (fold[row] == f) held_out[row] = predict(*values, row);
  }
  return held_out;
}

ErrorSummary summarize_log_residuals(std::span<const double> residuals) {
  ErrorSummary summary;
  summary.n = residuals.size();
  if (residuals.empty()) return summary;
  std::vector<double> absolute;
  absolute.reserve(residuals.size());
  for (double r : residuals) {
    const double error = 100.0 * std::expm1(r);
    summary.bias_pct += error;
    absolute.push_back(std::abs(error));
  }
  std::sort(absolute.begin(), absolute.end());
  const auto n = static_cast<double>(absolute.size());
  summary.bias_pct /= n;
  summary.mape_pct = std::accumulate(absolute.begin(), absolute.end(), 0.0) / n;
  const auto quantile = [&](double q) {
    const double at = q * (n - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, absolute.size() - 1);
    return absolute[below] + (at - static_cast<double>(below)) * (absolute[above] - absolute[below]);
  };
  summary.median_pct = quantile(0.5);
  summary.p90_pct = quantile(0.9);
  summary.max_pct = absolute.back();
  return summary;
}

}  // namespace foretrain
