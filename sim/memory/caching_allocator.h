// Model of PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, default settings): rounding,
// segments, best fit, splitting, coalescing. Answers how much is allocated and reserved, not where. A value;
// not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "model/base/units.h"

namespace foretrain {

// PyTorch's constants (c10/core/CachingDeviceAllocator and CUDACachingAllocator.cpp).
constexpr std::int64_t kMinBlockBytes = 512;           // every size is a multiple of it
constexpr std::int64_t kSmallBytes = 1 << 20;          // up to here requests come from the small pool
constexpr std::int64_t kSmallSegmentBytes = 2 << 20;   // the small pool's segments
constexpr std::int64_t kLargeSegmentBytes = 20 << 20;  // segments for requests below kMinLargeBytes
constexpr std::int64_t kMinLargeBytes = 10 << 20;      // from here a request has a segment of its own size
constexpr std::int64_t kRoundLargeBytes = 2 << 20;     // such segments are multiples of it

// The size of the block that serves a request: a multiple of 512, at least 512. Zero stays zero.
constexpr std::int64_t rounded_block_bytes(std::int64_t bytes) {
  if (bytes <= 0) return 0;
  return (bytes + kMinBlockBytes - 1) / kMinBlockBytes * kMinBlockBytes;
}

// The size of the segment that is requested from the driver when no free block serves a (rounded) request.
constexpr std::int64_t segment_bytes(std::int64_t rounded) {
  if (rounded <= kSmallBytes) return kSmallSegmentBytes;
  if (rounded < kMinLargeBytes) return kLargeSegmentBytes;
  return (rounded + kRoundLargeBytes - 1) / kRoundLargeBytes * kRoundLargeBytes;
}

class CachingAllocator {
 public:
  using Handle = std::int32_t;
  static constexpr Handle kNone = -1;

  // `capacity`: when a new segment would exceed it, all cached segments are released first; when that does
  // not help the segment is granted all the same and exceeded() becomes true.
  explicit CachingAllocator(Bytes capacity = Bytes(std::numeric_limits<std::int64_t>::max()));

  // A request of zero bytes gives kNone. Free blocks are reused only by the stream that they were allocated
  // for.
  Handle allocate(Bytes bytes, std::int32_t stream = 0);
  // kNone is ignored. Freeing a block twice is a bug of the caller.
  void free(Handle block);
  // torch.cuda.empty_cache(): returns the segments that are wholly free to the driver.
  void release_cached();

  Bytes block_size(Handle block) const { return Bytes(blocks_[static_cast<std::size_t>(block)].size); }
  Bytes allocated() const { return Bytes(allocated_); }  // torch.cuda.memory_allocated()
  Bytes reserved() const { return Bytes(reserved_); }    // torch.cuda.memory_reserved()
  Bytes peak_allocated() const { return Bytes(peak_allocated_); }
  Bytes peak_reserved() const { return Bytes(peak_reserved_); }
  std::int64_t segments() const { return segments_; }
  bool exceeded() const { return exceeded_; }

 private:
  struct Block {
    std::int64_t address = 0;
    std::int64_t size = 0;
    std::int32_t stream = 0;
    std::int32_t previous = kNone, next = kNone;  // neighbours inside the segment
    bool small = false;
    bool used = false;
  };
  // Best fit: the smallest free block of the stream, the lowest address among equals.
  using Key = std::tuple<std::int32_t, std::int64_t, std::int64_t, Handle>;  // stream, size, address, block
  using Pool = std::set<Key>;

  Block& at(Handle block) { return blocks_[static_cast<std::size_t>(block)]; }
  Pool& pool(bool small) { return small ? small_ : large_; }
  Key key(Handle block) {
    const Block& b = at(block);
    return {b.stream, b.size, b.address, block};
  }
  Handle new_block();
  Handle new_segment(std::int64_t rounded, std::int32_t stream);
  void split(Handle block, std::int64_t size);
  Handle merge(Handle left, Handle right);

  std::vector<Block> blocks_;
  std::vector<Handle> recycled_;
  Pool small_, large_;
  std::int64_t capacity_;
  std::int64_t next_address_ = 0;
  std::int64_t allocated_ = 0, reserved_ = 0, peak_allocated_ = 0, peak_reserved_ = 0, segments_ = 0;
  bool exceeded_ = false;
};

}  // namespace foretrain
