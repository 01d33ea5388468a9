#include "cli/timeline_output.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "cli/svg.h"
#include "model/base/file.h"
#include "model/base/format.h"
#include "model/timeline/chrome_trace.h"

namespace foretrain {

Expected<void> write_trace(const Timeline& timeline, const std::string& file) {
  return write_chrome_trace(timeline, file);
}
Expected<void> write_hta(const Timeline& timeline, const std::string& folder) {
  return write_hta_traces(timeline, folder);
}

Expected<void> write_svg(const Timeline& timeline, const Scenario& scenario, const std::string& file) {
  return write_file_atomic(file, timeline_svg(timeline, scenario.name));
}

}  // namespace foretrain
