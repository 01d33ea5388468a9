// What each rank's device did, read off a timeline: how long it computed, communicated, did both, and
// neither. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"
#include "model/timeline/timeline.h"

namespace foretrain {

// Lengths of unions of spans, so that nothing counts twice. Where an instruction's ops were recorded, its ops
// count and not the instruction.
struct RankActivity {
  std::int32_t rank = 0;
  Time computing;      // kernels that are not communication, at the speed they really ran
  Time communicating;  // collectives and transfers under way
  Time both;           // of these two at once
  Time idle;           // neither, between the start of the first and the end of the last
};

std::vector<RankActivity> activity_of(const Timeline& timeline);

}  // namespace foretrain
