// The fit recovers known machines, and reaches its bars on the published sweeps (sweeps.csv holds the rows of
// those with at least eight message sizes; sources stand in the table).
#include "calibrate/collectives/validate.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "calibrate/collectives/fit.h"
#include "model/hardware/link_priors.h"
#include "model/json/parse.h"

namespace foretrain {
namespace {

using testing::HasSubstr;

const char* const kTable = FORETRAIN_SOURCE_DIR "/tests/calibrate/collectives/sweeps.csv";

const CollectiveReport& published() {
  static const CollectiveReport report = [] {
    auto read = validate_collectives(std::string(kTable));
    EXPECT_TRUE(read.has_value());
    return read ? *read : CollectiveReport{};
  }();
  return report;
}

std::vector<CollectiveSample> alpha_beta_samples(double alpha_us, double us_per_byte) {
  std::vector<CollectiveSample> samples;
  for (double bytes = 8; bytes <= 1e9; bytes *= 4) {
    samples.push_back(
        {CollectiveKind::broadcast, {2, 1, false, false}, bytes, alpha_us + us_per_byte * bytes, 1});
  }
  return samples;
}

TEST(CollectiveValidation, PublishedSweepsMeetTheBar) {
  const auto& report = published();
  EXPECT_EQ(report.sweeps_counted, 21u);
  EXPECT_EQ(report.errors.n, 470u);
  EXPECT_LE(report.errors.median_pct, 4.0);
  EXPECT_LE(report.errors.p90_pct, 22.0);
}

TEST(CollectiveValidation, HeldOutSizesMeetTheSameBar) {
  EXPECT_LE(published().held_out.median_pct, 4.0);
  EXPECT_LE(published().held_out.p90_pct, 22.0);
}

TEST(CollectiveValidation, OneParameterSetPerMachineMeetsTheSameBar) {
  const auto& report = published();
  EXPECT_EQ(report.machines_counted, 17u);
  EXPECT_EQ(report.shared.n, 470u);
  EXPECT_LE(report.shared.median_pct, 4.0);
  EXPECT_LE(report.shared.p90_pct, 22.0);
}

TEST(CollectiveValidation, NoPredictionIsFasterThanItsFittedBandwidthAllows) {
  for (const auto& result : published().sweeps) {
    const double rate = result.fit.bus_bandwidth_gb_per_s.value * 1e9;
    for (const auto& p : result.predictions) {
      const double n = result.sweep.group.ranks;
      const double factor = result.sweep.kind == CollectiveKind::all_reduce ? 2 * (n - 1) / n : (n - 1) / n;
      EXPECT_GE(p.predicted_us * (1 + 1e-9), factor * static_cast<double>(p.bytes) / rate * 1e6);
    }
  }
}

TEST(CollectiveValidation, LinkPriorsAgreeWithTheFits) {
  for (const auto& result : published().sweeps) {
    const double rate = result.fit.bus_bandwidth_gb_per_s.value;
    const auto* prior = [&]() -> const LinkPrior* {
      if (result.sweep.gpu == "V100-PCIE-32GB") return find_link_prior("pcie_gen3_peer");
      if (result.sweep.gpu != "RTX 2080 Ti") return nullptr;
      const bool one_way =
          result.sweep.kind == CollectiveKind::broadcast || result.sweep.kind == CollectiveKind::reduce;
      return find_link_prior(one_way ? "pcie_gen3_via_host_one_way" : "pcie_gen3_via_host");
    }();
    if (prior == nullptr) continue;
    EXPECT_NEAR(rate / 15.75, prior->efficiency, 2 * prior->efficiency_spread) << result.sweep.gpu;
    EXPECT_NEAR(result.fit.latency_scale.value, prior->latency_scale, 2 * prior->latency_spread);
  }
}

TEST(CollectiveFit, RecoversTheBandwidthOfALatencyBandwidthLine) {
  const auto samples = alpha_beta_samples(10, 1e-4);  // 10 GB/s
  const auto fit = fit_collectives(samples).value();
  EXPECT_NEAR(fit.bus_bandwidth_gb_per_s.value, 10, 0.3);
  // Ring LL over PCIe with two ranks: 6.6 + 1.0 in the tuner.
  EXPECT_NEAR(fit.latency_scale.value, 10 / 7.6, 0.15);
}

RC_GTEST_PROP(CollectiveFit, RecoversTheParametersThatMadeTheSamples, ()) {
  CollectiveParameters truth;
  truth.latency_scale = *rc::gen::inRange(60, 400) * 0.01;
  truth.bus_bandwidth = Bandwidth::gb_per_s(*rc::gen::inRange(10, 3000) * 0.1);
  truth.protocol_ratio = *rc::gen::inRange(180, 500) * 0.01;
  const CollectiveGroup group{*rc::gen::inRange(2, 9), 1, *rc::gen::arbitrary<bool>(), false};
  std::vector<CollectiveSample> samples;
  for (double bytes = 8; bytes <= 5e9; bytes *= 2) {
    const double us = cost_seconds(CollectiveKind::all_reduce, bytes, group, truth) * 1e6;
    samples.push_back({CollectiveKind::all_reduce, group, bytes, us, 1});
  }
  const auto fit = fit_collectives(samples).value();
  RC_ASSERT(std::abs(fit.latency_scale.value / truth.latency_scale - 1) < 0.02);
  RC_ASSERT(std::abs(fit.bus_bandwidth_gb_per_s.value / truth.bus_bandwidth.gb_per_s() - 1) < 0.02);
  RC_ASSERT(std::abs(fit.protocol_ratio.value / truth.protocol_ratio - 1) < 0.05);
}

TEST(CollectiveFit, OneOutlierDoesNotPullTheFit) {
  auto samples = alpha_beta_samples(10, 1e-4);
  const auto clean = fit_collectives(samples).value();
  samples[7].time_us *= 20;
  const auto fit = fit_collectives(samples).value();
  EXPECT_NEAR(fit.bus_bandwidth_gb_per_s.value / clean.bus_bandwidth_gb_per_s.value, 1, 0.05);
  EXPECT_NEAR(fit.latency_scale.value / clean.latency_scale.value, 1, 0.1);
}

TEST(CollectiveFit, NoSamplesAreAnError) { EXPECT_FALSE(fit_collectives({}).has_value()); }

TEST(CollectiveFit, FewerSamplesThanParametersHaveNoStandardErrors) {
  auto samples = alpha_beta_samples(10, 1e-4);
  samples.resize(2);
  const auto fit = fit_collectives(samples).value();
  EXPECT_FALSE(fit.latency_scale.standard_error.has_value());
}

TEST(CollectiveReport, JsonHasAnEntryPerGpuAndOpAndASummary) {
  const auto json = parse_json(to_json_text(published()), "report.json");
  ASSERT_TRUE(json.has_value());
  const auto* sweeps = json->find("collectives");
  ASSERT_NE(sweeps, nullptr);
  ASSERT_EQ(sweeps->children().size(), 21u);
  for (const char* key : {"gpu", "op", "n", "mape_pct", "median_pct", "p90_pct"}) {
    EXPECT_NE(sweeps->children().front().find(key), nullptr) << key;
  }
  const auto* summary = json->find("summary");
  ASSERT_NE(summary, nullptr);
  EXPECT_EQ(summary->find("n")->as_integer(), 470);
  EXPECT_EQ(summary->find("fitted_parameters_per_sweep")->as_integer(), 3);
}

TEST(CollectiveReport, TextNamesEveryMachineAndTheSummary) {
  const std::string text = to_text(published());
  EXPECT_THAT(text, HasSubstr("V100-PCIE-32GB"));
  EXPECT_THAT(text, HasSubstr("21 sweeps, 3 parameters each"));
}

TEST(CollectiveReport, ASweepOfTooFewSizesIsNotFitted) {
  std::vector<CollectiveSweep> sweeps(1);
  sweeps[0].gpu = "X";
  sweeps[0].group.ranks = 2;
  sweeps[0].points = {{"", 8, 1.0}, {"", 16, 1.0}, {"", 16, 2.0}};
  const auto report = validate_collectives(sweeps);
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->sweeps.empty());
  EXPECT_EQ(report->errors.n, 0u);
}

}  // namespace
}  // namespace foretrain
