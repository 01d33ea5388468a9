// Fits profile parameters to measured cases: step times by robust least squares on log errors, memory by one
// constant per precision class. Nothing is fitted that is not named.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/cases/prepared_cases.h"
#include "calibrate/fit/least_squares.h"

namespace foretrain {

struct CaseFitOptions {
  std::vector<ParameterId> parameters;  // to fit; memory constants may be among them
  int starts = 1;                       // starting points for the time parameters
  int max_iterations = 40;
  double loss_scale = 0.03;  // log errors beyond this count linearly
};

struct CaseFit {
  Profile profile;  // with the fitted values, standard errors, correlations and provenance
  std::vector<ParameterId> parameters;  // of the time fit
  std::vector<ParameterId> at_bound;
  std::vector<ParameterId> not_identified;  // the data cannot tell their value
  double condition = 0;
};

// `rows`: the cases to fit to (indices). Errors: of simulating; no row with a measured time though a time
// parameter is asked for; more parameters than rows.
Expected<CaseFit> fit_cases(const PreparedCases& cases, std::span<const std::size_t> rows,
                            const Profile& start, const CaseFitOptions& options);

// The parameters a profile says were fitted.
std::vector<ParameterId> fitted_parameters(const Profile& profile);
bool is_memory_constant(ParameterId id);

}  // namespace foretrain
