// Validates predictions against a table of measured cases: errors row by row, their summary, and the errors
// of refits that never saw the row (leave-one-out).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/cases/fit_cases.h"

namespace foretrain {

struct CaseError {
  double predicted = 0, measured = 0;
  double error_pct = 0;                      // 100 (predicted / measured - 1)
  std::optional<double> held_out_error_pct;  // of the refit without this row
};

struct ValidatedCase {
  std::string name;
  std::optional<CaseError> step_time_ms;
  std::optional<CaseError> peak_mem_gib;
  double tokens_per_s = 0;  // predicted
  std::vector<std::string> warnings;
};

struct ErrorStatistics {
  std::size_t n = 0;
  double mape_pct = 0, max_abs_pct = 0, bias_pct = 0;
};

struct CaseValidation {
  std::vector<ValidatedCase> cases;
  ErrorStatistics step_time, peak_mem;
  std::optional<ErrorStatistics> step_time_held_out, peak_mem_held_out;
  Profile profile;                    // that predicted
  std::vector<ParameterId> fitted;    // its fitted parameters, memory constants included
  std::vector<std::string> warnings;  // of all cases, once each
};

struct ValidateOptions {
  bool leave_one_out = true;       // refits every fitted parameter once per row
  int threads = 0;                 // 0: all cores; the result does not depend on it
  std::function<void()> progress;  // called once per refit, from any thread
};

// Predicts every case under `profile`. With leave_one_out the parameters that the profile says were fitted
// are fitted again without each row, from the profile's values.
Expected<CaseValidation> validate_cases(const PreparedCases& cases, const Profile& profile,
                                        const ValidateOptions& options = {});

ErrorStatistics statistics_of(const std::vector<double>& errors_pct);

}  // namespace foretrain
