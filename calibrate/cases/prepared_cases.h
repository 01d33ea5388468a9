// The cases of a table, lowered and prepared once, then simulated for any profile: what fitting and
// leave-one-out call thousands of times. Simulating from several threads is safe.
#pragma once

#include <string>
#include <vector>

#include "calibrate/cases/case_table.h"
#include "model/program/step_program.h"
#include "sim/engine/simulate.h"

namespace foretrain {

struct CasePrediction {
  double step_time_ms = 0;
  double peak_mem_gib = 0;  // allocated, of the rank that is reported (see PreparedCases)
};

class PreparedCases {
 public:
  // Errors: of lowering and preparing, with the case's name.
  static Expected<PreparedCases> create(const std::vector<MeasuredCase>& cases);

  std::size_t size() const { return cases_.size(); }
  const MeasuredCase& measured(std::size_t i) const { return cases_[i].measured; }
  const StepProgram& program(std::size_t i) const { return cases_[i].program; }

  // Memory is that of rank 0, as people print it; with `memory` false it is not simulated (faster).
  Expected<CasePrediction> predict(std::size_t i, const Profile& profile, bool memory) const;

 private:
  struct Case {
    MeasuredCase measured;
    StepProgram program;
    Simulator simulator;
  };
  std::vector<Case> cases_;
};

}  // namespace foretrain
