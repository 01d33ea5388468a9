#include "model/timeline/timeline.h"

namespace foretrain {

std::string_view name_of(SpanCategory category) {
  switch (category) {
    case SpanCategory::compute:
      return "compute";
    case SpanCategory::communication:
      return "communication";
    case SpanCategory::pipeline_transfer:
      return "pipeline transfer";
    case SpanCategory::optimizer:
      return "optimizer";
    case SpanCategory::memory_copy:
      return "memory copy";
    case SpanCategory::host:
      return "host";
    case SpanCategory::step:
      return "step";
  }
  return "?";
}

std::int32_t Timeline::intern(std::string_view name) {
  // names may have been filled by a copy or a reader; the index then follows.
  for (std::size_t i = index_.size(); i < names.size(); ++i) {
    index_.emplace(names[i], static_cast<std::int32_t>(i));
  }
  const auto it = index_.find(name);
  if (it != index_.end()) return it->second;
  const auto id = static_cast<std::int32_t>(names.size());
  names.emplace_back(name);
  index_.emplace(names.back(), id);
  return id;
}

}  // namespace foretrain
