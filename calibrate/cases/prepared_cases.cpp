#include "calibrate/cases/prepared_cases.h"

#include <utility>

#include <fmt/format.h>

namespace foretrain {
namespace {

Errors with_case(Errors errors, const MeasuredCase& measured) {
  for (Error& error : errors) {
    error.message += fmt::format(" (case \"{}\")", measured.name);
    if (error.where.file.empty()) error.where = measured.where;
  }
  return errors;
}

}  // namespace

Expected<PreparedCases> PreparedCases::create(const std::vector<MeasuredCase>& cases) {
  PreparedCases prepared;
  Errors errors;
  for (const MeasuredCase& measured : cases) {
    const Scenario& s = measured.scenario;
    auto program = build_step_program(s.model, s.training, s.parallel);
    if (!program) {
      for (Error& e : with_case(std::move(program.error()), measured)) errors.push_back(std::move(e));
      continue;
    }
    auto simulator = Simulator::create(*program, s.cluster);
    if (!simulator) {
      for (Error& e : with_case(std::move(simulator.error()), measured)) errors.push_back(std::move(e));
      continue;
    }
    prepared.cases_.push_back(Case{measured, std::move(*program), std::move(*simulator)});
  }
  if (!errors.empty()) return fail(std::move(errors));
  return prepared;
}

Expected<CasePrediction> PreparedCases::predict(std::size_t i, const Profile& profile, bool memory) const {
  SimulationOptions options;
  options.memory = memory;
  auto result = cases_[i].simulator.run(profile, options);
  if (!result) return fail(with_case(std::move(result.error()), cases_[i].measured));
  CasePrediction prediction;
  prediction.step_time_ms = result->step_time.ms();
  if (memory && !result->memory.empty())
    prediction.peak_mem_gib = result->memory.front().peak_allocated.gib();
  return prediction;
}

}  // namespace foretrain
