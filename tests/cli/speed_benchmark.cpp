// What the program's speed is measured by: the reference table, validation with its refits, a 64-rank plan
// from scenario to trace, and 16,384 ranks.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "calibrate/cases/validate_cases.h"
#include "model/timeline/chrome_trace.h"
#include "sim/report/report.h"

namespace foretrain {
namespace {

const std::string kTable = FORETRAIN_SOURCE_DIR "/scenarios/a30_pcie/cases.csv";

void eighteen_cases(benchmark::State& state) {
  const auto table = read_case_table(kTable);
  for (auto _ : state) {
    const auto cases = PreparedCases::create(table->cases);
    for (std::size_t i = 0; i < cases->size(); ++i)
      benchmark::DoNotOptimize(cases->predict(i, table->profile, true));
  }
}
BENCHMARK(eighteen_cases)->Unit(benchmark::kMillisecond);

void validate_with_leave_one_out(benchmark::State& state) {
  const auto table = read_case_table(kTable);
  for (auto _ : state) {
    const auto cases = PreparedCases::create(table->cases);
    benchmark::DoNotOptimize(validate_cases(*cases, table->profile));
  }
}
BENCHMARK(validate_with_leave_one_out)->Unit(benchmark::kSecond)->Iterations(1)->UseRealTime();

constexpr const char* kPlan64 =
    R"({"model": {"layers": 16, "hidden": 4096, "heads": 32, "vocab": 50257, "max_positions": 2048},
  "training": {"micro_batches": 8, "sequence_length": 2048, "precision": "bf16", "attention": "flash"},
  "parallel": {"dp": 4, "tp": 8, "pp": 2, "sequence_parallel": true},
  "cluster": {"preset": "8xh100_sxm", "nodes": 8}})";

void plan_of_64_ranks_to_trace(benchmark::State& state) {
  const std::string file =
      (std::filesystem::temp_directory_path() / "foretrain_benchmark_trace.json").string();
  for (auto _ : state) {
    const auto s = parse_scenario(kPlan64, "plan64.json");
    PredictOptions options;
    options.intervals = false;
    options.simulation.timeline = options.simulation.all_ranks = options.simulation.ops = true;
    const auto prediction = predict(s->model, s->training, s->parallel, s->cluster, s->profile, options);
    benchmark::DoNotOptimize(write_chrome_trace(prediction->timeline, file));
  }
  std::filesystem::remove(file);
}
BENCHMARK(plan_of_64_ranks_to_trace)->Unit(benchmark::kSecond)->UseRealTime();

constexpr const char* kPlan16384 = R"({"model": "gpt3_175b",
  "training": {"micro_batches": 32, "sequence_length": 2048, "precision": "bf16", "attention": "flash"},
  "parallel": {"dp": 128, "tp": 8, "pp": 16, "sequence_parallel": true},
  "cluster": {"preset": "8xh100_sxm", "nodes": 2048}})";

void sixteen_thousand_ranks(benchmark::State& state) {
  for (auto _ : state) {
    const auto s = parse_scenario(kPlan16384, "plan16384.json");
    PredictOptions options;
    options.intervals = false;
    benchmark::DoNotOptimize(predict(s->model, s->training, s->parallel, s->cluster, s->profile, options));
  }
}
BENCHMARK(sixteen_thousand_ranks)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
}  // namespace foretrain
