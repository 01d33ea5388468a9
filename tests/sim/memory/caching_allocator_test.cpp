// Expected values follow from PyTorch's documented rules (notes on CUDA semantics, memory management) and the
// constants of c10/cuda/CUDACachingAllocator.cpp, worked by hand.
#include "sim/memory/caching_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

namespace foretrain {
namespace {

constexpr std::int64_t kMi = 1048576;

TEST(CachingAllocator, RequestsAreRoundedToMultiplesOf512Bytes) {
  CachingAllocator a;
  const auto one = a.allocate(Bytes(1));
  EXPECT_EQ(a.allocated(), Bytes(512));
  a.allocate(Bytes(512));
  EXPECT_EQ(a.allocated(), Bytes(1024));
  a.allocate(Bytes(513));
  EXPECT_EQ(a.allocated(), Bytes(2048));
  a.free(one);
  EXPECT_EQ(a.allocated(), Bytes(1536));
  EXPECT_EQ(a.peak_allocated(), Bytes(2048));
}

TEST(CachingAllocator, ZeroBytesNeedNoBlock) {
  CachingAllocator a;
  EXPECT_EQ(a.allocate(Bytes(0)), CachingAllocator::kNone);
  a.free(CachingAllocator::kNone);
  EXPECT_EQ(a.reserved(), Bytes(0));
}

TEST(CachingAllocator, SmallRequestsShareSegmentsOf2MiB) {
  CachingAllocator a;
  a.allocate(Bytes(1 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(2 * kMi));
  a.allocate(Bytes(1 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(2 * kMi));
  a.allocate(Bytes(1));
  EXPECT_EQ(a.reserved(), Bytes(4 * kMi));
  EXPECT_EQ(a.segments(), 2);
}

TEST(CachingAllocator, RequestsOfOneToTenMiBComeFromSegmentsOf20MiB) {
  CachingAllocator a;
  a.allocate(Bytes(1 * kMi + 1));
  EXPECT_EQ(a.reserved(), Bytes(20 * kMi));
  EXPECT_EQ(a.allocated(), Bytes(1 * kMi + 512));
  a.allocate(Bytes(9 * kMi));
  a.allocate(Bytes(9 * kMi));  // 20 MiB - 1 MiB - 512 B - 9 MiB leaves 10 MiB - 512 B
  EXPECT_EQ(a.reserved(), Bytes(20 * kMi));
  a.allocate(Bytes(2 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(40 * kMi));
}

TEST(CachingAllocator, RequestsFromTenMiBHaveSegmentsRoundedUpTo2MiB) {
  CachingAllocator a;
  a.allocate(Bytes(10 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(10 * kMi));
  a.allocate(Bytes(11 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(22 * kMi));
  // The remainder of 1 MiB is not split off a large block, so the whole block counts as allocated.
  EXPECT_EQ(a.allocated(), Bytes(22 * kMi));
}

TEST(CachingAllocator, LargeRemainderIsSplitOnlyAbove1MiB) {
  CachingAllocator a;
  a.free(a.allocate(Bytes(20 * kMi)));
  const auto whole = a.allocate(Bytes(19 * kMi));
  EXPECT_EQ(a.block_size(whole), Bytes(20 * kMi));  // 1 MiB left: not more than kSmallSize
  a.free(whole);
  const auto part = a.allocate(Bytes(19 * kMi - 512));
  EXPECT_EQ(a.block_size(part), Bytes(19 * kMi - 512));
  EXPECT_EQ(a.reserved(), Bytes(20 * kMi));
}

TEST(CachingAllocator, SmallRemainderIsSplitFrom512Bytes) {
  CachingAllocator a;
  const auto first = a.allocate(Bytes(1 * kMi));
  const auto second = a.allocate(Bytes(1 * kMi - 512));
  EXPECT_EQ(a.allocated(), Bytes(2 * kMi - 512));
  const auto last = a.allocate(Bytes(512));
  EXPECT_EQ(a.reserved(), Bytes(2 * kMi));
  for (const auto block : {first, second, last}) a.free(block);
  EXPECT_EQ(a.allocated(), Bytes(0));
  EXPECT_EQ(a.reserved(), Bytes(2 * kMi));
}

TEST(CachingAllocator, FreeNeighboursCoalesce) {
  CachingAllocator a;
  const auto x = a.allocate(Bytes(5 * kMi));
  const auto y = a.allocate(Bytes(5 * kMi));
  const auto z = a.allocate(Bytes(5 * kMi));
  a.free(x);
  a.free(z);
  // 5 MiB | used 5 MiB | 10 MiB: a request of 9 MiB fits into the merged tail.
  const auto tail = a.allocate(Bytes(9 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(20 * kMi));
  a.free(tail);
  a.free(y);
  const auto all = a.allocate(Bytes(20 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(20 * kMi));
  EXPECT_EQ(a.block_size(all), Bytes(20 * kMi));
}

TEST(CachingAllocator, BestFitTakesTheSmallestFreeBlock) {
  CachingAllocator a;
  const auto big = a.allocate(Bytes(40 * kMi));
  const auto middle = a.allocate(Bytes(30 * kMi));
  a.free(big);
  a.free(middle);
  const auto block = a.allocate(Bytes(29 * kMi));  // 1 MiB left in the 30 MiB segment: not split
  EXPECT_EQ(a.block_size(block), Bytes(30 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(70 * kMi));
}

TEST(CachingAllocator, SmallRequestsDoNotUseTheLargePool) {
  CachingAllocator a;
  a.free(a.allocate(Bytes(20 * kMi)));
  a.allocate(Bytes(1 * kMi));
  EXPECT_EQ(a.reserved(), Bytes(22 * kMi));
}

TEST(CachingAllocator, StreamsDoNotShareFreeBlocks) {
  CachingAllocator a;
  a.free(a.allocate(Bytes(12 * kMi), 0));
  a.allocate(Bytes(12 * kMi), 1);
  EXPECT_EQ(a.reserved(), Bytes(24 * kMi));
  a.allocate(Bytes(12 * kMi), 0);
  EXPECT_EQ(a.reserved(), Bytes(24 * kMi));
}

TEST(CachingAllocator, CachedSegmentsAreReleasedBeforeCapacityIsExceeded) {
  CachingAllocator a(Bytes(32 * kMi));
  a.free(a.allocate(Bytes(20 * kMi)));
  a.allocate(Bytes(24 * kMi));
  EXPECT_FALSE(a.exceeded());
  EXPECT_EQ(a.reserved(), Bytes(24 * kMi));
  a.allocate(Bytes(12 * kMi));
  EXPECT_TRUE(a.exceeded());
}

RC_GTEST_PROP(CachingAllocator, AllocatedIsTheSumOfLiveBlocksAndNeverAboveReserved, ()) {
  CachingAllocator a;
  std::map<CachingAllocator::Handle, std::int64_t> live;
  const auto steps = *rc::gen::container<std::vector<std::pair<bool, std::uint32_t>>>(
      200, rc::gen::pair(rc::gen::arbitrary<bool>(), rc::gen::inRange<std::uint32_t>(1, 64u << 20)));
  std::int64_t peak = 0;
  for (const auto& [release, size] : steps) {
    if (release && !live.empty()) {
      auto it = live.begin();
      std::advance(it, size % live.size());
      a.free(it->first);
      live.erase(it);
    } else {
      const auto block = a.allocate(Bytes(size), static_cast<std::int32_t>(size % 2));
      RC_ASSERT(!live.contains(block));
      RC_ASSERT(a.block_size(block).count() >= size);
      live[block] = a.block_size(block).count();
    }
    std::int64_t sum = 0;
    for (const auto& [block, bytes] : live) sum += bytes;
    peak = std::max(peak, sum);
    RC_ASSERT(a.allocated() == Bytes(sum));
    RC_ASSERT(a.reserved() >= a.allocated());
  }
  RC_ASSERT(a.peak_allocated() == Bytes(peak));
  for (const auto& [block, bytes] : live) a.free(block);
  a.release_cached();
  RC_ASSERT(a.reserved() == Bytes(0));  // everything coalesced back into whole segments
}

}  // namespace
}  // namespace foretrain
