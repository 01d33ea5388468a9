#include "model/program/strategies/gradient_buckets.h"

#include <utility>

namespace foretrain {

std::vector<std::vector<std::size_t>> assign_buckets(std::span<const Bytes> sizes, Bytes first, Bytes limit) {
  std::vector<std::vector<std::size_t>> buckets;
  std::vector<std::size_t> open;
  Bytes filled;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    open.push_back(i);
    filled += sizes[i];
    if (filled < (buckets.empty() ? first : limit)) continue;
    buckets.push_back(std::exchange(open, {}));
    filled = Bytes(0);
  }
  if (!open.empty()) buckets.push_back(std::move(open));
  return buckets;
}

}  // namespace foretrain
