#include "calibrate/fit/least_squares.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foretrain {
namespace {

// y = a + b x with fixed errors; closed-form regression is the independent answer.
struct Line {
  std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<double> y{3.1, 4.9, 7.2, 8.8, 11.1, 12.7, 15.3, 16.9};
  ResidualFunction residuals() const {
    return [this](std::span<const double> v, std::span<double> r) {
      for (std::size_t i = 0; i < x.size(); ++i) r[i] = v[0] + v[1] * x[i] - y[i];
      return true;
    };
  }
};

FitOptions plain() {
  FitOptions options;
  options.loss = RobustLoss::none;
  return options;
}

TEST(LeastSquares, EqualsClosedFormRegressionWithItsStandardErrors) {
  const Line line;
  const std::vector<FitParameter> parameters{{"a", 0, -10, 10, FitScale::linear},
                                             {"b", 0, -10, 10, FitScale::linear}};
  const auto fit = fit_least_squares(parameters, 8, line.residuals(), plain());
  ASSERT_TRUE(fit.has_value());

  const double n = 8, mx = 4.5, my = std::accumulate(line.y.begin(), line.y.end(), 0.0) / n;
  double sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    sxx += (line.x[i] - mx) * (line.x[i] - mx);
    sxy += (line.x[i] - mx) * (line.y[i] - my);
  }
  const double b = sxy / sxx, a = my - b * mx;
  double squares = 0;
  for (std::size_t i = 0; i < 8; ++i) squares += std::pow(a + b * line.x[i] - line.y[i], 2);
  const double s = std::sqrt(squares / (n - 2));
  EXPECT_NEAR(fit->values[0], a, 1e-5);
  EXPECT_NEAR(fit->values[1], b, 1e-6);
  EXPECT_NEAR(fit->standard_errors[1], s / std::sqrt(sxx), 1e-4 * s);
  EXPECT_NEAR(fit->standard_errors[0], s * std::sqrt(1 / n + mx * mx / sxx), 1e-4 * s);
  EXPECT_NEAR(fit->correlation[1], -mx / std::sqrt(mx * mx + sxx / n), 1e-4);
  EXPECT_NEAR(fit->residual_rms, std::sqrt(squares / n), 1e-6);
  EXPECT_TRUE(fit->converged);
}

TEST(LeastSquares, LogScaleGivesTheErrorInTheParametersUnit) {
  // One parameter, residual ln(p / y): the solution is the geometric mean.
  const std::vector<double> y{80, 100, 125, 110, 90};
  const auto residuals = [&](std::span<const double> v, std::span<double> r) {
    for (std::size_t i = 0; i < y.size(); ++i) r[i] = log_residual(v[0], y[i]);
    return true;
  };
  const std::vector<FitParameter> parameters{{"p", 1, 0.1, 1e6, FitScale::log}};
  const auto fit = fit_least_squares(parameters, y.size(), residuals, plain());
  ASSERT_TRUE(fit.has_value());
  double mean = 0;
  for (double v : y) mean += std::log(v) / 5;
  double squares = 0;
  for (double v : y) squares += std::pow(std::log(v) - mean, 2);
  EXPECT_NEAR(fit->values[0], std::exp(mean), 1e-4);
  EXPECT_NEAR(fit->standard_errors[0], std::exp(mean) * std::sqrt(squares / 4 / 5), 1e-3);
}

TEST(LeastSquares, ABoundHoldsAndItsParameterIsReportedThere) {
  const Line line;
  const std::vector<FitParameter> parameters{{"a", 0, -10, 10, FitScale::linear},
                                             {"b", 0.5, 0, 1.5, FitScale::linear}};
  const auto fit = fit_least_squares(parameters, 8, line.residuals(), plain());
  ASSERT_TRUE(fit.has_value());
  EXPECT_DOUBLE_EQ(fit->values[1], 1.5);
  EXPECT_TRUE(fit->at_bound[1]);
  EXPECT_FALSE(fit->at_bound[0]);
  EXPECT_EQ(fit->standard_errors[1], 0);
  EXPECT_NEAR(fit->values[0], std::accumulate(line.y.begin(), line.y.end(), 0.0) / 8 - 1.5 * 4.5, 1e-3);
}

TEST(LeastSquares, RobustLossIgnoresAnOutlierThatPullsTheSquare) {
  Line line;
  line.y[7] = 100;
  const std::vector<FitParameter> parameters{{"a", 0, -100, 100, FitScale::linear},
                                             {"b", 1, -100, 100, FitScale::linear}};
  FitOptions robust;
  robust.loss = RobustLoss::cauchy;
  robust.loss_scale = 0.3;
  const auto with = fit_least_squares(parameters, 8, line.residuals(), robust);
  const auto without = fit_least_squares(parameters, 8, line.residuals(), plain());
  ASSERT_TRUE(with && without);
  EXPECT_NEAR(with->values[1], 2.0, 0.1);
  EXPECT_GT(without->values[1], 5.0);
}

TEST(LeastSquares, CombinationThatDataDoNotDetermineIsInfinite) {
  const Line line;
  // Only the product of the two counts.
  const auto residuals = [&](std::span<const double> v, std::span<double> r) {
    for (std::size_t i = 0; i < line.x.size(); ++i) r[i] = log_residual(v[0] * v[1] * line.x[i], line.y[i]);
    return true;
  };
  const std::vector<FitParameter> parameters{{"a", 1, 0.1, 10, FitScale::log},
                                             {"b", 1, 0.1, 10, FitScale::log}};
  const auto fit = fit_least_squares(parameters, 8, residuals, plain());
  ASSERT_TRUE(fit.has_value());
  EXPECT_TRUE(std::isinf(fit->standard_errors[0]));
  EXPECT_TRUE(std::isinf(fit->standard_errors[1]));
  EXPECT_TRUE(std::isinf(fit->condition));
}

TEST(LeastSquares, MoreStartsFindTheDeeperValley) {
  // Two valleys: at 1 (cost 0.5) and at 9 (cost 0).
  const auto residuals = [](std::span<const double> v, std::span<double> r) {
    r[0] = std::min(std::abs(v[0] - 1) + 1.0, 2 * std::abs(v[0] - 9));
    r[1] = 0;
    return true;
  };
  const std::vector<FitParameter> parameters{{"x", 2, 0, 10, FitScale::linear}};
  FitOptions options = plain();
  const auto one = fit_least_squares(parameters, 2, residuals, options);
  options.starts = 12;
  const auto many = fit_least_squares(parameters, 2, residuals, options);
  ASSERT_TRUE(one && many);
  EXPECT_NEAR(one->values[0], 1, 0.01);
  EXPECT_NEAR(many->values[0], 9, 0.01);
}

TEST(LeastSquares, WrongUseIsAnError) {
  const auto residuals = [](std::span<const double>, std::span<double> r) {
    r[0] = std::nan("");
    return true;
  };
  const std::vector<FitParameter> good{{"x", 1, 0, 10, FitScale::linear}};
  EXPECT_FALSE(fit_least_squares({}, 1, residuals));
  EXPECT_FALSE(fit_least_squares(good, 0, residuals));
  EXPECT_FALSE(fit_least_squares(good, 1, residuals)) << "a residual that is not a number";
  const std::vector<FitParameter> reversed{{"x", 1, 10, 0, FitScale::linear}};
  EXPECT_FALSE(fit_least_squares(reversed, 1, residuals));
  const std::vector<FitParameter> log_of_zero{{"x", 1, 0, 10, FitScale::log}};
  const auto fit = fit_least_squares(log_of_zero, 1, residuals);
  ASSERT_FALSE(fit);
  EXPECT_NE(fit.error()[0].message.find("above 0"), std::string::npos);
}

TEST(LeastSquares, SameInputGivesTheSameAnswerBitByBit) {
  const Line line;
  const std::vector<FitParameter> parameters{{"a", 0, -10, 10, FitScale::logit},
                                             {"b", 1, 0.1, 10, FitScale::log}};
  FitOptions options;
  options.starts = 5;
  const auto one = fit_least_squares(parameters, 8, line.residuals(), options);
  const auto two = fit_least_squares(parameters, 8, line.residuals(), options);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->values, two->values);
  EXPECT_EQ(one->standard_errors, two->standard_errors);
}

RC_GTEST_PROP(LeastSquares, RecoversThePowerLawThatMadeTheData, ()) {
  const double a = *rc::gen::inRange(1, 1000), b = *rc::gen::inRange(-20, 20) * 0.1;
  std::vector<double> x, y;
  for (int i = 1; i <= 12; ++i) {
    x.push_back(i);
    y.push_back(a * std::pow(i, b));
  }
  const auto residuals = [&](std::span<const double> v, std::span<double> r) {
    for (std::size_t i = 0; i < x.size(); ++i) r[i] = log_residual(v[0] * std::pow(x[i], v[1]), y[i]);
    return true;
  };
  const std::vector<FitParameter> parameters{{"a", 30, 1e-3, 1e6, FitScale::log},
                                             {"b", 0, -4, 4, FitScale::linear}};
  const auto fit = fit_least_squares(parameters, x.size(), residuals);
  RC_ASSERT(fit.has_value());
  RC_ASSERT(std::abs(fit->values[0] / a - 1) < 1e-3);
  RC_ASSERT(std::abs(fit->values[1] - b) < 1e-3);
}

RC_GTEST_PROP(Folds, AreBalancedAndTheSameEveryTime, ()) {
  const auto rows = *rc::gen::inRange<std::size_t>(1, 200);
  const int k = *rc::gen::inRange(1, 10);
  const std::vector<int> fold = fold_of_rows(rows, k);
  RC_ASSERT(fold == fold_of_rows(rows, k));
  std::vector<std::size_t> counts(static_cast<std::size_t>(k), 0);
  for (int f : fold) ++counts.at(static_cast<std::size_t>(f));
  const auto used = std::min<std::size_t>(rows, static_cast<std::size_t>(k));
  for (std::size_t f = 0; f < used; ++f) {
    RC_ASSERT(counts[f] >= rows / used);
    RC_ASSERT(counts[f] <= rows / used + 1);
  }
}

TEST(CrossValidation, HoldsEveryRowOutOnceAndNeverShowsItToTheFit) {
  const std::vector<double> y{1, 2, 3, 4, 5, 6, 7};
  const auto fit = [&](std::span<const std::size_t> rows) -> Expected<std::vector<double>> {
    // Bit mask of the rows seen.
    double mask = 0;
    for (std::size_t row : rows) mask += std::pow(2, static_cast<double>(row));
    return std::vector<double>{mask};
  };
  const auto predict = [](std::span<const double> values, std::size_t row) {
    const auto seen = static_cast<std::uint64_t>(values[0]);
    return ((seen >> row) & 1) ? 1.0 : 0.0;
  };
  const auto held_out = cross_validate(y.size(), 5, 1, fit, predict);
  ASSERT_TRUE(held_out.has_value());
  for (double seen : *held_out) EXPECT_EQ(seen, 0.0);
  EXPECT_FALSE(cross_validate(1, 5, 1, fit, predict));
}

TEST(ErrorSummary, CountsPredictionsAgainstMeasurements) {
  const std::vector<double> residuals{std::log(1.1), std::log(0.9), std::log(1.4), 0.0, 0.0};
  const ErrorSummary summary = summarize_log_residuals(residuals);
  EXPECT_EQ(summary.n, 5u);
  EXPECT_NEAR(summary.mape_pct, 12.0, 1e-9);
  EXPECT_NEAR(summary.median_pct, 10.0, 1e-9);
  EXPECT_NEAR(summary.max_pct, 40.0, 1e-9);
  EXPECT_NEAR(summary.p90_pct, 10 + 0.6 * 30, 1e-9);
  EXPECT_NEAR(summary.bias_pct, 8.0, 1e-9);
}

}  // namespace
}  // namespace foretrain
