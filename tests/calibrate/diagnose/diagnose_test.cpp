// diagnose must name each oddity that was put into a table, and nothing in tables that have none.
#include "calibrate/diagnose/diagnose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace foretrain {
namespace {

CaseTable shipped() {
  auto table = read_case_table(FORETRAIN_SOURCE_DIR "/scenarios/a30_pcie/cases.csv");
  EXPECT_TRUE(table) << (table ? "" : to_text(table.error()));
  return std::move(*table);
}

// The table's rows as correct steps, measured by the simulator with 1 % noise and no slow-down.
CaseTable clean(unsigned seed) {
  CaseTable table = shipped();
  table.profile.at(ParameterId::multi_gpu_slowdown).value = 1.0;
  table.profile.at(ParameterId::multi_gpu_slowdown).fitted = false;
  for (MeasuredCase& c : table.cases) c.scenario.parallel.pp_forward_only_ranks = false;
  auto cases = PreparedCases::create(table.cases);
  EXPECT_TRUE(cases);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> noise(-0.01, 0.01);
  for (std::size_t i = 0; i < table.cases.size(); ++i) {
    const auto made = cases->predict(i, table.profile, true);
    EXPECT_TRUE(made);
    MeasuredCase& c = table.cases[i];
    const double tokens = *c.tokens_per_s * *c.step_time_ms;
    c.step_time_ms = made->step_time_ms * (1 + noise(random));
    c.tokens_per_s = tokens / *c.step_time_ms;
    c.peak_mem_gib = made->peak_mem_gib * (1 + 0.2 * noise(random));
    // 6 N tokens/s over the tensor cores' peak (165 TFLOPS each), N = 125,226,240.
    c.mfu_pct = 100 * 6 * 125226240.0 * *c.tokens_per_s / (165e12 * c.scenario.parallel.world());
  }
  return table;
}

bool found(const Diagnosis& diagnosis, const std::string& kind) {
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [&](const Finding& f) { return f.kind == kind && !f.evidence.empty(); });
}

TEST(Diagnose, FindsNothingInCleanTables) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const auto diagnosis = diagnose(clean(seed));
    ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
    EXPECT_TRUE(diagnosis->findings.empty()) << diagnosis->findings.front().statement;
  }
}

TEST(Diagnose, FindsFaultyPipelineMemoryAndTheSlowdownInThePublishedTable) {
  const auto diagnosis = diagnose(shipped());
  ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
  EXPECT_TRUE(found(*diagnosis, "pp_forward_only_ranks"));
  EXPECT_TRUE(found(*diagnosis, "multi_gpu_slowdown"));
  EXPECT_FALSE(found(*diagnosis, "memory_unit"));
  EXPECT_EQ(diagnosis->findings.size(), 2u);
}

// The authors wrote "GB" over values that are GiB.
TEST(Diagnose, FindsGiBUnderAGBHeading) {
  CaseTable table = shipped();
  table.memory_in_gb = true;
  for (MeasuredCase& c : table.cases) *c.peak_mem_gib *= 1e9 / 1073741824.0;  // as read from a GB column
  const auto diagnosis = diagnose(table);
  ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
  EXPECT_TRUE(found(*diagnosis, "memory_unit"));
  EXPECT_TRUE(found(*diagnosis, "pp_forward_only_ranks"));
}

// The authors' MFU of 0.5 % and 1.6 % for the single GPU, where their own formula gives 3.8 % and 11.9 %.
TEST(Diagnose, FindsAnMfuColumnThatDoesNotFollowFromItsFormula) {
  CaseTable table = clean(7);
  table.cases[0].mfu_pct = 0.5;
  table.cases[1].mfu_pct = 1.6;
  const auto diagnosis = diagnose(table);
  ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
  ASSERT_EQ(diagnosis->findings.size(), 1u);
  EXPECT_EQ(diagnosis->findings[0].kind, "mfu_column");
  EXPECT_EQ(diagnosis->findings[0].cases.size(), 2u);
}

TEST(Diagnose, FindsASlowdownOfAnySizeThatWasPutIn) {
  for (const double factor : {1.4, 3.0}) {
    CaseTable table = clean(3);
    Profile slow = table.profile;
    slow.at(ParameterId::multi_gpu_slowdown).value = factor;
    auto cases = PreparedCases::create(table.cases);
    ASSERT_TRUE(cases);
    for (std::size_t i = 0; i < table.cases.size(); ++i) {
      const auto made = cases->predict(i, slow, false);
      ASSERT_TRUE(made);
      table.cases[i].step_time_ms = made->step_time_ms;
      table.cases[i].mfu_pct.reset();
    }
    const auto diagnosis = diagnose(table);
    ASSERT_TRUE(diagnosis) << to_text(diagnosis.error());
    EXPECT_TRUE(found(*diagnosis, "multi_gpu_slowdown")) << factor;
  }
}

}  // namespace
}  // namespace foretrain
