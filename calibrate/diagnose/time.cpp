// Time questions: a slow-down of all multi-GPU rows, and MFU columns that do not follow from their formula.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "calibrate/cases/fit_cases.h"
#include "calibrate/diagnose/diagnose.h"
#include "model/ops/expand.h"
#include "sim/report/report.h"

namespace foretrain {

Expected<bool> diagnose_multi_gpu_slowdown(const CaseTable& table, const PreparedCases& cases,
                                           Diagnosis& diagnosis) {
  std::vector<std::size_t> rows;
  std::size_t single = 0;
  std::size_t many = 0;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases.measured(i).step_time_ms) continue;
    rows.push_back(i);
    const bool alone = cases.measured(i).scenario.parallel.world() == 1;
    (alone ? single : many) += 1;
    if (!alone) names.push_back(cases.measured(i).name);
  }
  std::vector<ParameterId> others = fitted_parameters(table.profile);
  std::erase_if(
      others, [](ParameterId id) { return id == ParameterId::multi_gpu_slowdown || is_memory_constant(id); });
  if (others.empty()) {
    others = {ParameterId::matmul_efficiency_fp32, ParameterId::memory_efficiency,
              ParameterId::host_time_per_op_us, ParameterId::pcie_efficiency,
              ParameterId::host_bridge_gb_per_s};
  }
  if (single == 0 || many < 3 || rows.size() < others.size() + 3) {
    diagnosis.tried.push_back(
        "multi-GPU slow-down: needs a single-GPU row, 3 multi-GPU rows and more rows than parameters");
    return false;
  }
  // The same parameters fitted twice: without a slow-down, and with it as one more.
  Profile start = table.profile;
  start.at(ParameterId::multi_gpu_slowdown).value = 1.0;
  CaseFitOptions options;
  options.parameters = others;
  options.starts = 2;
  auto without = fit_cases(cases, rows, start, options);
  if (!without) return fail(std::move(without.error()));
  options.parameters.push_back(ParameterId::multi_gpu_slowdown);
  Profile again = without->profile;
  again.at(ParameterId::multi_gpu_slowdown).value =
      std::max(1.01, table.profile[ParameterId::multi_gpu_slowdown]);
  auto with = fit_cases(cases, rows, again, options);
  if (!with) return fail(std::move(with.error()));
  const auto mean_error = [&](const Profile& profile) -> Expected<double> {
    double sum = 0;
    for (const std::size_t i : rows) {
      auto prediction = cases.predict(i, profile, false);
      if (!prediction) return fail(std::move(prediction.error()));
      sum += std::abs(prediction->step_time_ms / *cases.measured(i).step_time_ms - 1.0);
    }
    return sum / static_cast<double>(rows.size());
  };
  const auto error_without = mean_error(without->profile);
  if (!error_without) return fail(Errors(error_without.error()));
  const auto error_with = mean_error(with->profile);
  if (!error_with) return fail(Errors(error_with.error()));
  const ParameterValue& factor = with->profile.at(ParameterId::multi_gpu_slowdown);
  diagnosis.tried.push_back(
      fmt::format("multi-GPU slow-down: {:.2f} +- {:.2f}; mean error {:.1f} % with it, {:.1f} % without",
                  factor.value, factor.standard_error, 100 * *error_with, 100 * *error_without));
  const bool significant = factor.value - 1.0 > 3.0 * factor.standard_error && factor.value > 1.1;
  if (!(significant && *error_with < 0.6 * *error_without)) return false;
  Finding finding;
  finding.kind = "multi_gpu_slowdown";
  finding.statement = fmt::format(
      "All work on the device takes {:.2f} +- {:.2f} times as long in multi-GPU rows as in single-GPU rows; "
      "no model of "
      "communication explains it. Clocks, power caps or shared GPUs differed between the jobs.",
      factor.value, factor.standard_error);
  finding.evidence.push_back(
      fmt::format("{} rows, {} fitted parameters: mean error {:.1f} %; with the factor as one more: {:.1f} %",
                  rows.size(), others.size(), 100 * *error_without, 100 * *error_with));
  for (const std::size_t i : rows) {
    const MeasuredCase& measured = cases.measured(i);
    if (measured.scenario.parallel.pp < 2) continue;
    Profile unslowed = with->profile;
    unslowed.at(ParameterId::multi_gpu_slowdown).value = 1.0;
    auto fast = cases.predict(i, unslowed, false);
    if (!fast) return fail(std::move(fast.error()));
    finding.evidence.push_back(
        fmt::format("{}, where one GPU works at a time: measured {:.0f} ms, {:.0f} ms without the factor",
                    measured.name, *measured.step_time_ms, fast->step_time_ms));
  }
  finding.cases = std::move(names);
  diagnosis.findings.push_back(std::move(finding));
  return true;
}

void diagnose_mfu(const CaseTable& table, Diagnosis& diagnosis) {
  Finding finding;
  finding.kind = "mfu_column";
  std::size_t rows = 0;
  for (const MeasuredCase& measured : table.cases) {
    if (!measured.mfu_pct || !measured.tokens_per_s) continue;
    ++rows;
    const Scenario& s = measured.scenario;
    const double peak = peak_rate(s.cluster.gpu, s.training.precision).per_s();
    const double tensor_peak = std::max(s.cluster.gpu.fp16.per_s(), s.cluster.gpu.bf16.per_s());
    const double flops = model_flops_6n(s.model, *measured.tokens_per_s).count() / s.parallel.world();
    // People divide by the peak of the precision or by the tensor cores' whatever the precision: both are
    // right by their own words, so only a value that fits neither is odd.
    const double by_precision = 100 * flops / peak;
    const double by_tensor = 100 * flops / tensor_peak;
    const auto near = [&](double value) { return std::abs(*measured.mfu_pct / value - 1.0) < 0.1; };
    if (near(by_precision) || near(by_tensor)) continue;
    finding.cases.push_back(measured.name);
    finding.evidence.push_back(
        fmt::format("{}: the column says {:g} %; 6 x {:.1f} M x {:.0f} tokens/s / {:g} TFLOPS = {:.1f} %",
                    measured.name, *measured.mfu_pct, static_cast<double>(parameter_count(s.model)) * 1e-6,
                    *measured.tokens_per_s, tensor_peak * 1e-12 * s.parallel.world(), by_tensor));
  }
  diagnosis.tried.push_back(
      rows == 0 ? "MFU column: the table has none"
                : fmt::format("MFU column: {} of {} rows do not follow from 6 N tokens/s / peak",
                              finding.cases.size(), rows));
  if (finding.cases.empty()) return;
  finding.statement = "The MFU column does not follow from its formula, 6 N tokens/s over the peak.";
  diagnosis.findings.push_back(std::move(finding));
}

Expected<Diagnosis> diagnose(const CaseTable& table) {
  Diagnosis diagnosis;
  auto cases = PreparedCases::create(table.cases);
  if (!cases) return fail(std::move(cases.error()));
  if (auto done = diagnose_memory_unit(table, *cases, diagnosis); !done) return fail(std::move(done.error()));
  if (auto done = diagnose_pipeline_memory(table, diagnosis); !done) return fail(std::move(done.error()));
  if (auto done = diagnose_multi_gpu_slowdown(table, *cases, diagnosis); !done)
    return fail(std::move(done.error()));
  diagnose_mfu(table, diagnosis);
  return diagnosis;
}

}  // namespace foretrain
