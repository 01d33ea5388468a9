// Any JSON as a profile: values inside their bounds or errors, never a crash.
#include <cstdint>
#include <string>

#include "model/json/parse.h"
#include "model/scenario/profile_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto document =
      foretrain::parse_json(std::string(reinterpret_cast<const char*>(data), size), "fuzz.json");
  if (!document) return 0;
  foretrain::Profile profile = foretrain::default_profile();
  foretrain::Errors errors;
  foretrain::read_profile_object(*document, profile, errors);
  for (const foretrain::ParameterSpec& spec : foretrain::profile_parameters()) {
    if (!(profile[spec.id] >= spec.low && profile[spec.id] <= spec.high)) __builtin_trap();
  }
  return 0;
}
