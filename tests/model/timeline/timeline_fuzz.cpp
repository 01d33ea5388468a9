// Any bytes as a Chrome trace: a timeline or errors, never a crash.
#include <cstdint>
#include <string>

#include "model/timeline/chrome_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto timeline =
      foretrain::parse_chrome_trace(std::string(reinterpret_cast<const char*>(data), size), "fuzz.json");
  if (!timeline && timeline.error().empty()) __builtin_trap();
  if (timeline) {
    for (const foretrain::Span& span : timeline->spans) {
      if (span.end_ps < span.start_ps) __builtin_trap();
    }
  }
  return 0;
}
