// Timelines as files: Chrome traces, folders for Holistic Trace Analysis, and a picture.
#pragma once

#include <string>

#include "model/base/error.h"
#include "model/scenario/scenario.h"
#include "model/timeline/timeline.h"

namespace foretrain {

// Chrome trace JSON, gzipped when the name ends in .gz.
Expected<void> write_trace(const Timeline& timeline, const std::string& file);
// One file per rank.
Expected<void> write_hta(const Timeline& timeline, const std::string& folder);
// Tracks of ranks and streams over the step as SVG.
Expected<void> write_svg(const Timeline& timeline, const Scenario& scenario, const std::string& file);

}  // namespace foretrain
