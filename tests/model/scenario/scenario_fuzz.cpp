// Any bytes as a scenario: an answer or errors, never a crash.
#include <cstdint>
#include <string>

#include "model/scenario/scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // No files are read: what a fuzzer names must not be opened.
  if (text.find("base") != std::string::npos || text.find("import") != std::string::npos ||
      text.find("profile") != std::string::npos || text.find("\\u") != std::string::npos) {
    return 0;
  }
  const auto scenario = foretrain::parse_scenario(text, "fuzz.json");
  if (!scenario && scenario.error().empty()) __builtin_trap();
  return 0;
}
