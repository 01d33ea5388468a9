#include "model/timeline/statistics.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace foretrain {
namespace {

using Stretch = std::pair<std::int64_t, std::int64_t>;  // start, end

std::vector<Stretch> merged(std::vector<Stretch> stretches) {
  std::sort(stretches.begin(), stretches.end());
  std::vector<Stretch> result;
  for (const Stretch& s : stretches) {
    if (!result.empty() && s.first <= result.back().second) {
      result.back().second = std::max(result.back().second, s.second);
    } else {
      result.push_back(s);
    }
  }
  return result;
}

std::int64_t length(const std::vector<Stretch>& stretches) {
  std::int64_t sum = 0;
  for (const Stretch& s : stretches) sum += s.second - s.first;
  return sum;
}

std::int64_t common(const std::vector<Stretch>& a, const std::vector<Stretch>& b) {
  std::int64_t sum = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    sum += std::max<std::int64_t>(0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    (a[i].second < b[j].second ? i : j) += 1;
  }
  return sum;
}

}  // namespace

std::vector<RankActivity> activity_of(const Timeline& timeline) {
  std::set<std::tuple<std::int32_t, std::uint8_t, std::int32_t>> with_ops;
  for (const Span& span : timeline.spans) {
    if (span.op >= 0) with_ops.emplace(span.rank, span.stream, span.instruction);
  }
  struct Lists {
    std::vector<Stretch> computing, communicating;
  };
  std::map<std::int32_t, Lists> ranks;
  for (const Span& span : timeline.spans) {
    if (span.stream == kHostTrack || span.end_ps <= span.start_ps) continue;
    if (span.op < 0 && with_ops.contains({span.rank, span.stream, span.instruction})) continue;
    switch (span.category) {
      case SpanCategory::compute:
      case SpanCategory::optimizer:
        ranks[span.rank].computing.emplace_back(span.start_ps, span.end_ps);
        break;
      case SpanCategory::communication:
      case SpanCategory::pipeline_transfer:
        ranks[span.rank].communicating.emplace_back(span.start_ps, span.end_ps);
        break;
      case SpanCategory::memory_copy:
      case SpanCategory::host:
      case SpanCategory::step:
        break;
    }
  }
  std::vector<RankActivity> result;
  for (auto& [rank, lists] : ranks) {
    const std::vector<Stretch> computing = merged(std::move(lists.computing));
    const std::vector<Stretch> communicating = merged(std::move(lists.communicating));
    RankActivity activity;
    activity.rank = rank;
    const std::int64_t both = common(computing, communicating);
    activity.computing = Time::from_ps(length(computing));
    activity.communicating = Time::from_ps(length(communicating));
    activity.both = Time::from_ps(both);
    std::int64_t first = INT64_MAX;
    std::int64_t last = 0;
    for (const std::vector<Stretch>* list : {&computing, &communicating}) {
      if (list->empty()) continue;
      first = std::min(first, list->front().first);
      last = std::max(last, list->back().second);
    }
    if (last > 0) {
      activity.idle = Time::from_ps(last - first - length(computing) - length(communicating) + both);
    }
    result.push_back(activity);
  }
  return result;
}

}  // namespace foretrain
