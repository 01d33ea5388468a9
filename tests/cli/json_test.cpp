// What programs read: the keys of --json, and that the numbers behind them agree with one another.
#include <gtest/gtest.h>

#include <cmath>

#include "model/json/csv.h"
#include "model/json/edit.h"
#include "model/json/parse.h"
#include "tests/cli/program.h"

namespace foretrain::test {
namespace {

const std::filesystem::path kSource = FORETRAIN_SOURCE_DIR;

JsonValue json_of(const std::vector<std::string>& arguments) {
  const Outcome outcome = run_program(arguments, kSource);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  auto document = parse_json(outcome.out, "stdout");
  EXPECT_TRUE(document) << (document ? "" : to_text(document.error()));
  return document.value_or(JsonValue{});
}

double number(const JsonValue& root, const std::string& path) {
  const JsonValue* value = find_path(root, path);
  EXPECT_NE(value, nullptr) << path;
  if (value == nullptr) return -1;
  EXPECT_TRUE(value->is_number()) << path;
  return value->as_double();
}

TEST(Json, PredictHasItsKeysAndTheyAgree) {
  for (const char* scenario :
       {"scenarios/ddp.json", "scenarios/multi_node_4x16.json", "scenarios/qwen2.5_7b_2x4.json"}) {
    SCOPED_TRACE(scenario);
    const JsonValue p = json_of({"predict", scenario, "--json", "-"});
    const double step = number(p, "step_time_ms.value");
    EXPECT_LE(number(p, "step_time_ms.low"), step);
    EXPECT_GE(number(p, "step_time_ms.high"), step);
    EXPECT_NEAR(number(p, "breakdown_ms.compute") + number(p, "breakdown_ms.exposed_communication") +
                    number(p, "breakdown_ms.bubble") + number(p, "breakdown_ms.host"),
                step, 1e-6 * step);
    EXPECT_NEAR(number(p, "exposed_communication_ms"), number(p, "breakdown_ms.exposed_communication"),
                1e-6 * step);
    EXPECT_NEAR(number(p, "bubble_fraction"), number(p, "breakdown_ms.bubble") / step, 1e-6);
    double memory = 0;
    for (const char* kind :
         {"parameters", "gradients", "optimizer", "activations", "buffers", "workspace", "communication"}) {
      memory += number(p, std::string("memory_gib.") + kind);
    }
    EXPECT_NEAR(memory, number(p, "peak_mem_gib"), 1e-3);
    EXPECT_GE(number(p, "reserved_mem_gib"), number(p, "peak_mem_gib"));
    EXPECT_GT(number(p, "mfu"), 0);
    EXPECT_LT(number(p, "hfu"), 1);
    EXPECT_GT(number(p, "tokens_per_s"), 0);
  }
}

// MFU of the published single-GPU fp16 row by its formula: 6 N tokens/s / 165 TFLOPS = 11.9 % (PaLM's
// convention).
TEST(Json, MfuIsTheFormulaOverTheThroughput) {
  const JsonValue p = json_of({"predict", "scenarios/single_gpu.json", "--json", "-"});
  EXPECT_NEAR(number(p, "mfu"), 6 * 125226240.0 * number(p, "tokens_per_s") / 165e12, 1e-9);
}

// Korthikanti et al. (2022) report 54.2 % MFU for a 530B GPT on 2,240 A100. Nothing was fitted to it.
TEST(Json, PublishedMfuOfALargeRunIsPredictedFromDatasheets) {
  const JsonValue p =
      json_of({"predict", "scenarios/megatron_530b_2240.json", "--no-intervals", "--json", "-"});
  EXPECT_EQ(number(p, "gpus"), 2240);
  EXPECT_NEAR(number(p, "mfu_with_attention"), 0.542, 0.03);
}

TEST(Json, ValidateHasItsKeys) {
  const JsonValue v = json_of({"validate", "scenarios/a30_pcie/cases.csv", "--json", "-"});
  ASSERT_EQ(v.find("cases")->children().size(), 18u);
  double sum = 0;
  for (const JsonValue& c : v.find("cases")->children()) {
    const double error = 100 * (number(c, "predicted") / number(c, "measured") - 1);
    EXPECT_NEAR(number(c, "error_pct"), error, 1e-9);
    sum += std::abs(error);
  }
  EXPECT_NEAR(number(v, "summary.step_time.mape_pct"), sum / 18, 1e-9);
  for (const char* path :
       {"summary.step_time.n", "summary.step_time.max_abs_pct", "summary.step_time.bias_pct",
        "summary.peak_mem.mape_pct", "summary.leave_one_out.step_time.mape_pct"}) {
    number(v, path);
  }
  EXPECT_LE(find_path(v, "summary.fitted_parameters")->children().size(), 8u);
  for (const JsonValue& p : find_path(v, "summary.fitted_parameters")->children())
    EXPECT_GT(number(p, "standard_error"), 0);
}

TEST(Json, FaultyPipelineStepsAreFlaggedInEveryReport) {
  const std::vector<std::string> faulty{"scenarios/a30_pcie/base.json", "--pp", "4", "--set",
                                        "parallel.pp_forward_only_ranks=true"};
  for (const char* verb : {"predict", "trace"}) {
    std::vector<std::string> arguments{verb};
    arguments.insert(arguments.end(), faulty.begin(), faulty.end());
    const Scratch scratch;
    if (std::string(verb) == "trace") {
      arguments.insert(arguments.end(), {"--chrome", (scratch.path() / "t.json").string()});
    }
    arguments.insert(arguments.end(), {"--json", "-"});
    const JsonValue report = json_of(arguments);
    ASSERT_EQ(report.find("warnings")->children().size(), 1u) << verb;
    EXPECT_NE(report.find("warnings")->children()[0].as_string().find("NOT a correct training step"),
              std::string::npos);
  }
}

TEST(Json, SweepCsvHasARowPerCombinationInOrder) {
  const Outcome outcome =
      run_program({"sweep", "scenarios/single_gpu.json", "--over", "training.micro_batch_size=1,2,4",
                   "--over", "training.precision=fp32,fp16_amp", "--csv", "-"},
                  kSource);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto table = parse_csv(outcome.out, "stdout");
  ASSERT_TRUE(table) << to_text(table.error());
  ASSERT_EQ(table->rows(), 6u);
  EXPECT_EQ(table->text(0, 0), "1");
  EXPECT_EQ(table->text(1, 1), "fp16_amp");
  EXPECT_EQ(table->text(5, 0), "4");
}

TEST(Json, ComparingAScenarioWithItselfChangesNothing) {
  const JsonValue c = json_of({"compare", "scenarios/ddp.json", "scenarios/ddp.json", "--json", "-"});
  ASSERT_EQ(c.find("scenarios")->children().size(), 2u);
  EXPECT_EQ(number(c.find("scenarios")->children()[1], "step_time_change_pct"), 0);
}

// NVLink must not be slower than PCIe, and a model that does not fit must be answered with "no".
TEST(Json, WhatIfsGoTheRightWay) {
  const JsonValue c =
      json_of({"compare", "scenarios/ddp.json", "--what-if", "cluster.preset=4xa30_nvlink", "--json", "-"});
  EXPECT_LE(number(c.find("scenarios")->children()[1], "step_time_change_pct"), 0);
  const Outcome outcome =
      run_program({"predict", "scenarios/single_gpu.json", "--set", "model=gpt3_13b"}, kSource);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("GiB of 24.00 GiB"), std::string::npos);
}

TEST(Json, PlanRanksByStepTimeAndGivesEveryLoserAReason) {
  const JsonValue p = json_of({"plan", "scenarios/ddp.json", "--json", "-"});
  double last = 0;
  bool fitting = true;
  for (const JsonValue& s : p.find("strategies")->children()) {
    EXPECT_FALSE(s.find("reason")->as_string().empty());
    const bool fits = find_path(s, "prediction.fits")->as_bool();
    if (fitting && !fits) last = 0;
    EXPECT_TRUE(fitting || !fits);
    fitting = fits;
    EXPECT_GE(number(s, "prediction.step_time_ms.value"), last);
    last = number(s, "prediction.step_time_ms.value");
  }
}

}  // namespace
}  // namespace foretrain::test
