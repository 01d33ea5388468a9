// How validations, fitted profiles and diagnoses are shown.
#pragma once

#include <string>

#include "calibrate/cases/validate_cases.h"
#include "calibrate/diagnose/diagnose.h"
#include "model/json/value.h"

namespace foretrain {

std::string to_text(const CaseValidation& validation);
JsonValue to_json(const CaseValidation& validation);
std::string to_csv(const CaseValidation& validation);

// The fitted parameters with unit, value, standard error, bounds and provenance.
std::string fitted_text(const Profile& profile, const std::vector<ParameterId>& fitted);

std::string to_text(const Diagnosis& diagnosis);
JsonValue to_json(const Diagnosis& diagnosis);

}  // namespace foretrain
