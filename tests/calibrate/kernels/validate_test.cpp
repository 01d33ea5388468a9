#include "calibrate/kernels/validate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "model/json/write.h"
#include "sim/device/matmul.h"

namespace foretrain {
namespace {

// Rows that the model itself made with known parameters on a V100 (thin and large shapes), with an error of
// `noise` that alternates in sign.
KernelTable synthetic(const KernelParameters& truth, double noise) {
  KernelTable table;
  for (const std::int64_t m : {256, 1024, 2560, 4096, 7000})
    for (const std::int64_t n : {16, 64, 700, 4096})
      for (const std::int64_t k : {512, 1760, 4096, 100000}) {
        KernelRow row;
        row.gpu_name = "V100";
        row.gpu = find_gpu("v100_sxm2_16");
        row.op = "gemm";
        row.dtype = "fp16";
        row.matmul.m = m;
        row.matmul.n = n;
        row.matmul.k = k;
        row.matmul.input = row.matmul.output = DType::fp16;
        row.matmul.tensor_cores = true;
        row.measured_us = choose_matmul(*row.gpu, row.matmul, truth).total_us;
        row.measured_us *= 1 + (table.rows.size() % 2 == 0 ? noise : -noise);
        table.rows.push_back(row);
      }
  return table;
}

KernelParameters truth() {
  KernelParameters p =
      default_kernel_parameters(KernelKind::matmul_tensor, GpuArchitecture::volta).parameters;
  p[KernelParameterId::tile_efficiency] = 0.7;
  p[KernelParameterId::memory_efficiency] = 0.6;
  p[KernelParameterId::launch_us] = 6;
  return p;
}

TEST(ValidateKernels, RecoversTheParametersThatMadeTheRows) {
  const auto report = validate_kernel_rows(synthetic(truth(), 0));
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->groups.size(), 1u);
  const KernelGroup& group = report->groups[0];
  ASSERT_TRUE(group.held_out.has_value());
  EXPECT_EQ(group.held_out->n, 80u);
  EXPECT_LT(group.held_out->mape_pct, 2);
  EXPECT_GT(group.defaults.mape_pct, 10);
  EXPECT_LE(group.fitted.size(), 7u);
  for (const KernelEstimate& estimate : group.fitted) {
    if (estimate.id == KernelParameterId::tile_efficiency) {
      EXPECT_NEAR(estimate.value, 0.7, 0.05);
    }
    if (estimate.id == KernelParameterId::memory_efficiency) {
      EXPECT_NEAR(estimate.value, 0.6, 0.03);
    }
    if (estimate.id == KernelParameterId::launch_us) {
      EXPECT_NEAR(estimate.value, 6, 0.4);
    }
  }
}

TEST(ValidateKernels, HeldOutErrorIsAtLeastTheNoiseOfTheRows) {
  const auto report = validate_kernel_rows(synthetic(truth(), 0.05));
  ASSERT_TRUE(report.has_value());
  EXPECT_GT(report->groups[0].held_out->mape_pct, 4);
  EXPECT_LT(report->groups[0].held_out->mape_pct, 8);
}

TEST(ValidateKernels, SameTableGivesTheSameReport) {
  const KernelTable table = synthetic(truth(), 0.05);
  const auto one = validate_kernel_rows(table), two = validate_kernel_rows(table);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(to_text(to_json(*one)), to_text(to_json(*two)));
}

TEST(ValidateKernels, FewRowsAreJudgedByTheDefaultsAlone) {
  KernelTable table = synthetic(truth(), 0);
  table.rows.resize(5);
  const auto report = validate_kernel_rows(table);
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->groups[0].held_out.has_value());
  EXPECT_TRUE(report->groups[0].fitted.empty());
  const JsonValue json = to_json(*report);
  const JsonValue& group = json.find("kernels")->children().at(0);
  EXPECT_EQ(group.find("validation")->as_string(), "defaults");
  EXPECT_NE(to_text(*report).find(" *"), std::string::npos);
}

TEST(ValidateKernels, JsonHasTheKeysThatProgramsRead) {
  KernelTable table = synthetic(truth(), 0.02);
  table.skipped.push_back({"MI300X", "gemm", "bf16", "no preset of this GPU", 3});
  const auto report = validate_kernel_rows(table);
  ASSERT_TRUE(report.has_value());
  const JsonValue json = to_json(*report);
  const JsonValue& group = json.find("kernels")->children().at(0);
  for (const char* key : {"gpu", "op", "dtype", "n", "mape_pct", "median_pct", "p90_pct", "in_sample",
                          "defaults", "fitted_parameters"})
    EXPECT_NE(group.find(key), nullptr) << key;
  EXPECT_EQ(group.find("n")->as_integer(), 80);
  const JsonValue& parameter = group.find("fitted_parameters")->children().at(0);
  for (const char* key : {"name", "unit", "value", "standard_error", "at_bound"})
    EXPECT_NE(parameter.find(key), nullptr) << key;
  EXPECT_EQ(json.find("skipped")->children().at(0).find("n")->as_integer(), 3);
}

TEST(ParametersToFit, FollowTheNumberOfRows) {
  const KernelParameterSet& set =
      default_kernel_parameters(KernelKind::matmul_tensor, GpuArchitecture::volta);
  EXPECT_EQ(parameters_to_fit(set, 160).size(), set.fitted.size());
  EXPECT_EQ(parameters_to_fit(set, 12).size(), 3u);
  EXPECT_EQ(parameters_to_fit(set, 12)[0], set.fitted[0]);
  EXPECT_TRUE(parameters_to_fit(set, 1).empty());
}

}  // namespace
}  // namespace foretrain
