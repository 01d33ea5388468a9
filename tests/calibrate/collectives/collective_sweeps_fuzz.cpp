// Any bytes as a table of collective measurements: sweeps or located errors, never a crash; what was read is
// in range.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "calibrate/collectives/sweeps.h"
#include "model/json/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = foretrain::parse_csv(text, "fuzz.csv");
  if (!table) return 0;
  const auto sweeps = foretrain::read_collective_sweeps(*table);
  if (!sweeps) {
    if (sweeps.error().empty()) std::abort();
    return 0;
  }
  for (const auto& sweep : *sweeps) {
    if (sweep.points.empty() || sweep.group.ranks < 2 || sweep.group.nodes < 1) std::abort();
    for (const auto& point : sweep.points) {
      if (point.bytes < 1 || !(point.time_us > 0)) std::abort();
    }
  }
  return 0;
}
