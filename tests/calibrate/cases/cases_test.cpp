// Case tables, fits and leave-one-out: on the shipped A30 table (published measurements) and on tables that
// the simulator made itself with known parameters, which a fit must find again.
#include <gtest/gtest.h>

#include <cmath>

#include "calibrate/cases/validate_cases.h"

namespace foretrain {
namespace {

const std::string kTable = FORETRAIN_SOURCE_DIR "/scenarios/a30_pcie/cases.csv";

PreparedCases prepared(const CaseTable& table) {
  auto cases = PreparedCases::create(table.cases);
  EXPECT_TRUE(cases) << (cases ? "" : to_text(cases.error()));
  return std::move(*cases);
}

CaseTable shipped() {
  auto table = read_case_table(kTable);
  EXPECT_TRUE(table) << (table ? "" : to_text(table.error()));
  return std::move(*table);
}

TEST(CaseTable, HoldsThe18PublishedRuns) {
  const CaseTable table = shipped();
  ASSERT_EQ(table.cases.size(), 18u);
  // 2048 tokens a step on one GPU, 8,300 tokens/s (published): 246.7 ms.
  EXPECT_NEAR(*table.cases[0].step_time_ms, 2048 / 8300.0 * 1e3, 1e-9);
  // DDP on four GPUs: four times the tokens.
  EXPECT_EQ(table.cases[4].scenario.parallel.dp, 4);
  EXPECT_NEAR(*table.cases[4].step_time_ms, 4 * 2048 / 10921.0 * 1e3, 1e-9);
  // Tensor parallelism: all ranks see the same batch.
  EXPECT_EQ(table.cases[12].scenario.parallel.tp, 4);
  EXPECT_NEAR(*table.cases[12].step_time_ms, 2048 / 2258.0 * 1e3, 1e-9);
}

TEST(CaseValidation, MeetsTheStatedAccuracyOnTheA30Table) {
  const CaseTable table = shipped();
  const PreparedCases cases = prepared(table);
  const auto validation = validate_cases(cases, table.profile);
  ASSERT_TRUE(validation) << to_text(validation.error());
  EXPECT_EQ(validation->step_time.n, 18u);
  EXPECT_LE(validation->step_time.mape_pct, 2.3);
  EXPECT_LE(validation->step_time.max_abs_pct, 7.0);
  ASSERT_TRUE(validation->step_time_held_out);
  EXPECT_LE(validation->step_time_held_out->mape_pct, 4.0);
  EXPECT_LE(validation->peak_mem.mape_pct, 1.0);
  EXPECT_LE(validation->peak_mem.max_abs_pct, 3.0);
  EXPECT_LE(validation->fitted.size(), 8u);
  for (const ParameterId id : validation->fitted) {
    const ParameterValue& value = table.profile.at(id);
    EXPECT_GT(value.standard_error, 0.0);
    EXPECT_LT(value.standard_error, std::abs(value.value))
        << profile_parameters()[static_cast<std::size_t>(id)].name;
  }
}

TEST(CaseValidation, DoesNotDependOnTheNumberOfThreads) {
  const CaseTable table = shipped();
  const PreparedCases cases = prepared(table);
  ValidateOptions one;
  one.threads = 1;
  ValidateOptions three;
  three.threads = 3;
  const auto a = validate_cases(cases, table.profile, one);
  const auto b = validate_cases(cases, table.profile, three);
  ASSERT_TRUE(a && b);
  for (std::size_t i = 0; i < a->cases.size(); ++i) {
    EXPECT_EQ(*a->cases[i].step_time_ms->held_out_error_pct, *b->cases[i].step_time_ms->held_out_error_pct);
  }
}

TEST(CaseFit, TheShippedProfileIsWhatTheFitGives) {
  const CaseTable table = shipped();
  const PreparedCases cases = prepared(table);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) rows.push_back(i);
  CaseFitOptions options;
  options.parameters = fitted_parameters(table.profile);
  const auto fit = fit_cases(cases, rows, table.profile, options);
  ASSERT_TRUE(fit) << to_text(fit.error());
  for (const ParameterId id : options.parameters) {
    EXPECT_NEAR(fit->profile[id], table.profile[id], 0.05 * std::abs(table.profile[id]) + 1e-3)
        << profile_parameters()[static_cast<std::size_t>(id)].name;
  }
}

// A table whose measurements are simulated with known parameters: the fit must return them.
TEST(CaseFit, FindsTheParametersThatMadeTheTable) {
  CaseTable table = shipped();
  Profile truth = table.profile;
  truth.at(ParameterId::memory_efficiency).value = 0.71;
  truth.at(ParameterId::multi_gpu_slowdown).value = 1.3;
  truth.at(ParameterId::host_bridge_gb_per_s).value = 6.5;
  {
    const PreparedCases cases = prepared(table);
    for (std::size_t i = 0; i < table.cases.size(); ++i) {
      const auto made = cases.predict(i, truth, false);
      ASSERT_TRUE(made);
      table.cases[i].step_time_ms = made->step_time_ms;
    }
  }
  const PreparedCases cases = prepared(table);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) rows.push_back(i);
  CaseFitOptions options;
  options.parameters = {ParameterId::memory_efficiency, ParameterId::multi_gpu_slowdown,
                        ParameterId::host_bridge_gb_per_s};
  const auto fit = fit_cases(cases, rows, table.profile, options);
  ASSERT_TRUE(fit) << to_text(fit.error());
  EXPECT_NEAR(fit->profile[ParameterId::memory_efficiency], 0.71, 0.002);
  EXPECT_NEAR(fit->profile[ParameterId::multi_gpu_slowdown], 1.3, 0.004);
  EXPECT_NEAR(fit->profile[ParameterId::host_bridge_gb_per_s], 6.5, 0.03);
  EXPECT_TRUE(fit->not_identified.empty());
}

TEST(CaseFit, SaysWhichParameterTheDataCannotDetermine) {
  CaseTable table = shipped();
  table.cases.resize(4);  // one and two GPUs, no NVLink anywhere
  const PreparedCases cases = prepared(table);
  const std::vector<std::size_t> rows{0, 1, 2, 3};
  CaseFitOptions options;
  options.parameters = {ParameterId::memory_efficiency, ParameterId::nvlink_efficiency};
  const auto fit = fit_cases(cases, rows, table.profile, options);
  ASSERT_TRUE(fit) << to_text(fit.error());
  ASSERT_EQ(fit->not_identified.size(), 1u);
  EXPECT_EQ(fit->not_identified.front(), ParameterId::nvlink_efficiency);
}

TEST(CaseFit, RefusesMoreParametersThanRows) {
  CaseTable table = shipped();
  table.cases.resize(2);
  const PreparedCases cases = prepared(table);
  const std::vector<std::size_t> rows{0, 1};
  CaseFitOptions options;
  options.parameters = {ParameterId::memory_efficiency, ParameterId::matmul_efficiency_fp32};
  const auto fit = fit_cases(cases, rows, table.profile, options);
  ASSERT_FALSE(fit);
  EXPECT_NE(to_text(fit.error()).find("2 step times cannot determine 2 parameters"), std::string::npos);
}

TEST(ErrorStatistics, AreThoseOfTheirDefinition) {
  const ErrorStatistics s = statistics_of({-2, 1, 4});
  EXPECT_EQ(s.n, 3u);
  EXPECT_DOUBLE_EQ(s.mape_pct, 7.0 / 3);
  EXPECT_DOUBLE_EQ(s.bias_pct, 1.0);
  EXPECT_DOUBLE_EQ(s.max_abs_pct, 4.0);
}

}  // namespace
}  // namespace foretrain
