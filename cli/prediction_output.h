// How a prediction is shown: text for people and JSON for programs. Shared by predict, compare, sweep and
// plan.
#pragma once

#include <string>

#include "model/json/value.h"
#include "model/scenario/scenario.h"
#include "sim/report/report.h"

namespace foretrain {

JsonValue to_json(const Interval& interval);
JsonValue to_json(const Scenario& scenario, const Prediction& prediction);

// "312.4 ms (298.1 to 327.0)"; without an interval only the value.
std::string with_interval(const Interval& interval, const std::string& unit, int decimals);

std::string summary_text(const Scenario& scenario, const Prediction& prediction);
// Where the time of each pipeline stage goes, in per cent and ms.
std::string breakdown_text(const Prediction& prediction);
// Every memory class at the peak of the fullest rank.
std::string memory_text(const Prediction& prediction);
// The pipeline diagram: a row per stage, F and B with their micro-batch, one column per time slot.
std::string schedule_text(const Prediction& prediction, int columns);

// Every warning once, a line each: what a report must never leave out.
std::string warnings_text(const std::vector<const Prediction*>& predictions);

Expected<Prediction> predict(const Scenario& scenario, const PredictOptions& options);

}  // namespace foretrain
