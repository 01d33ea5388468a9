// Memory questions: the unit of the column, and pipeline rows without a backward.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "calibrate/diagnose/diagnose.h"

namespace foretrain {
namespace {

// Mean absolute log error of measured against predicted, after the one constant that no tensor owns has been
// given its best value between 0 and 256 MiB (so that neither reading is favoured by it).
double misfit(const std::vector<std::pair<double, double>>& predicted_measured_gib) {
  double best = 1e300;
  for (int mib = 0; mib <= 256; mib += 4) {
    double sum = 0;
    for (const auto& [predicted, measured] : predicted_measured_gib) {
      sum += std::abs(std::log((predicted + mib / 1024.0) / measured));
    }
    best = std::min(best, sum / static_cast<double>(predicted_measured_gib.size()));
  }
  return best;
}

Profile without_constants(Profile profile) {
  profile.at(ParameterId::memory_constant_fp32_mib).value = 0;
  profile.at(ParameterId::memory_constant_amp_mib).value = 0;
  return profile;
}

}  // namespace

Expected<bool> diagnose_memory_unit(const CaseTable& table, const PreparedCases& cases,
                                    Diagnosis& diagnosis) {
  constexpr double kGbPerGib = 1.073741824;
  std::vector<std::pair<double, double>> as_said, as_other;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const MeasuredCase& measured = cases.measured(i);
    if (!measured.peak_mem_gib || measured.scenario.parallel.pp > 1)
      continue;  // pipelines have a question of their own
    auto prediction = cases.predict(i, without_constants(measured.scenario.profile), true);
    if (!prediction) return fail(std::move(prediction.error()));
    as_said.emplace_back(prediction->peak_mem_gib, *measured.peak_mem_gib);
    as_other.emplace_back(prediction->peak_mem_gib, table.memory_in_gb ? *measured.peak_mem_gib * kGbPerGib
                                                                       : *measured.peak_mem_gib / kGbPerGib);
    names.push_back(measured.name);
  }
  if (as_said.size() < 3) {
    diagnosis.tried.push_back("memory unit: needs at least 3 rows with peak memory and without pipeline");
    return false;
  }
  const double said = misfit(as_said);
  const double other = misfit(as_other);
  const char* named = table.memory_in_gb ? "GB" : "GiB";
  const char* meant = table.memory_in_gb ? "GiB" : "GB";
  diagnosis.tried.push_back(fmt::format("memory unit: mean misfit {:.2f} % read as {}, {:.2f} % read as {}",
                                        100 * said, named, 100 * other, meant));
  if (!(other < 0.5 * said && said > 0.02 && other < 0.02)) return false;
  Finding finding;
  finding.kind = "memory_unit";
  finding.statement = fmt::format("The peak memory column says {}, but its values are {}.", named, meant);
  finding.evidence.push_back(
      fmt::format("{} rows against the simulated peak (parameters, gradients, optimizer state and "
                  "activations by formula): mean misfit {:.2f} % when read as {}, {:.2f} % as {}",
                  as_said.size(), 100 * other, meant, 100 * said, named));
  finding.cases = std::move(names);
  diagnosis.findings.push_back(std::move(finding));
  return true;
}

Expected<bool> diagnose_pipeline_memory(const CaseTable& table, Diagnosis& diagnosis) {
  std::vector<MeasuredCase> correct, faulty;
  for (const MeasuredCase& measured : table.cases) {
    if (measured.scenario.parallel.pp < 2 || !measured.peak_mem_gib) continue;
    correct.push_back(measured);
    correct.back().scenario.parallel.pp_forward_only_ranks = false;
    faulty.push_back(measured);
    faulty.back().scenario.parallel.pp_forward_only_ranks = true;
  }
  if (correct.empty()) {
    diagnosis.tried.push_back("pipeline memory: no row has pp > 1 and a peak memory");
    return false;
  }
  // A column in the wrong unit must not hide this: both readings are tried and the better one counts.
  constexpr double kGbPerGib = 1.073741824;
  const auto misfit_of = [&](const std::vector<MeasuredCase>& rows,
                             std::vector<double>& predicted) -> Expected<double> {
    auto prepared = PreparedCases::create(rows);
    if (!prepared) return fail(std::move(prepared.error()));
    std::vector<std::pair<double, double>> as_said, as_other;
    for (std::size_t i = 0; i < prepared->size(); ++i) {
      auto prediction = prepared->predict(i, without_constants(rows[i].scenario.profile), true);
      if (!prediction) return fail(std::move(prediction.error()));
      predicted.push_back(prediction->peak_mem_gib);
      as_said.emplace_back(prediction->peak_mem_gib, *rows[i].peak_mem_gib);
      as_other.emplace_back(prediction->peak_mem_gib,
                            *rows[i].peak_mem_gib * (table.memory_in_gb ? kGbPerGib : 1.0));
    }
    return std::min(misfit(as_said), misfit(as_other));
  };
  std::vector<double> predicted_correct, predicted_faulty;
  const auto right = misfit_of(correct, predicted_correct);
  if (!right) return fail(Errors(right.error()));
  const auto wrong = misfit_of(faulty, predicted_faulty);
  if (!wrong) return fail(Errors(wrong.error()));
  diagnosis.tried.push_back(
      fmt::format("pipeline memory: mean misfit {:.1f} % with a full backward, {:.1f} % with forward-only "
                  "ranks",
                  100 * *right, 100 * *wrong));
  const double with_backward = *right;
  const double forward_only = *wrong;
  if (!(forward_only < 0.25 * with_backward && with_backward > 0.05)) return false;
  Finding finding;
  finding.kind = "pp_forward_only_ranks";
  finding.statement =
      "The memory of the pipeline rows fits only a step in which ranks before the last run no backward and "
      "own "
      "no gradients or optimizer state: these runs did not train the whole model.";
  finding.evidence.push_back(
      fmt::format("mean misfit {:.1f} % with forward-only ranks, {:.1f} % with a full backward", 100 * *wrong,
                  100 * *right));
  for (std::size_t i = 0; i < correct.size(); ++i) {
    finding.evidence.push_back(
        fmt::format("{}: measured {:.2f} GiB, rank 0 of a full step {:.2f} GiB, forward only {:.2f} GiB",
                    correct[i].name, *correct[i].peak_mem_gib, predicted_correct[i], predicted_faulty[i]));
    finding.cases.push_back(correct[i].name);
  }
  diagnosis.findings.push_back(std::move(finding));
  return true;
}

}  // namespace foretrain
