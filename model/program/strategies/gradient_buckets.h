// How gradients are grouped into buckets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/base/units.h"

namespace foretrain {

// PyTorch's compute_bucket_assignment_by_size (torch/csrc/distributed/c10d/reducer.cpp) over gradients of one
// dtype in the order in which they become ready: a bucket is closed by the gradient that brings it to its
// limit or beyond; the first bucket's limit is `first`, the others' `limit`. Indices into `sizes`, by bucket.
std::vector<std::vector<std::size_t>> assign_buckets(std::span<const Bytes> sizes, Bytes first, Bytes limit);

}  // namespace foretrain
