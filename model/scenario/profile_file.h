// Profiles as files: strict JSON, one object per parameter. Thread-safe.
//
//   { "name": "4x A30 PCIe",
//     "parameters": { "host_time_per_op_us": {"value": 12.1, "standard_error": 0.4, "provenance": "...",
//     "fitted": true} }, "correlation": { "parameters": ["a", "b"], "matrix": [[1, 0.2], [0.2, 1]] } }
//
// A parameter may also be a plain number. Its unit is the suffix of its name.
#pragma once

#include <string>

#include "model/base/error.h"
#include "model/hardware/profile.h"
#include "model/json/value.h"

namespace foretrain {

// Lays what the document says over `profile`. Errors: unknown names (with the nearest), values outside
// the declared bounds, a correlation that is not a square symmetric matrix with ones on its diagonal.
void read_profile_object(const JsonValue& value, Profile& profile, Errors& errors);

// The default profile with the file's parameters laid over it.
Expected<Profile> read_profile(const std::string& file);

// The parameters that are not at their defaults, or all of them.
JsonValue to_json(const Profile& profile, bool all = false);

}  // namespace foretrain
