// A timeline as a picture: one track per rank and stream, time to the right, colours by what the time was
// spent on (distinguishable without red and green). Pure function.
#pragma once

#include <string>

#include "model/timeline/timeline.h"

namespace foretrain {

// At most `most_ranks` ranks are drawn; the title says so when there are more.
std::string timeline_svg(const Timeline& timeline, const std::string& title, int width = 1280,
                         int most_ranks = 16);

}  // namespace foretrain
