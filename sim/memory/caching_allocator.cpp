#include "sim/memory/caching_allocator.h"

#include <algorithm>
#include <cassert>

namespace foretrain {

CachingAllocator::CachingAllocator(Bytes capacity) : capacity_(capacity.count()) {}

CachingAllocator::Handle CachingAllocator::new_block() {
  if (recycled_.empty()) {
    blocks_.emplace_back();
    return static_cast<Handle>(blocks_.size()) - 1;
  }
  const Handle block = recycled_.back();
  recycled_.pop_back();
  at(block) = Block{};
  return block;
}

CachingAllocator::Handle CachingAllocator::new_segment(std::int64_t rounded, std::int32_t stream) {
  const std::int64_t size = segment_bytes(rounded);
  if (size > capacity_ - reserved_) release_cached();
  if (size > capacity_ - reserved_) exceeded_ = true;
  const Handle block = new_block();
  Block& b = at(block);
  b.address = next_address_;
  b.size = size;
  b.stream = stream;
  b.small = rounded <= kSmallBytes;
  next_address_ += size;
  reserved_ += size;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  ++segments_;
  return block;
}

void CachingAllocator::split(Handle block, std::int64_t size) {
  const Handle rest = new_block();
  Block& b = at(block);
  Block& r = at(rest);
  r.address = b.address + size;
  r.size = b.size - size;
  r.stream = b.stream;
  r.small = b.small;
  r.previous = block;
  r.next = b.next;
  if (r.next != kNone) at(r.next).previous = rest;
  b.next = rest;
  b.size = size;
  pool(r.small).insert(key(rest));
}

CachingAllocator::Handle CachingAllocator::allocate(Bytes bytes, std::int32_t stream) {
  const std::int64_t size = rounded_block_bytes(bytes.count());
  if (size == 0) return kNone;
  const bool small = size <= kSmallBytes;
  Pool& free_blocks = pool(small);
  const auto it = free_blocks.lower_bound(Key{stream, size, -1, kNone});
  Handle block;
  if (it != free_blocks.end() && std::get<0>(*it) == stream) {
    block = std::get<3>(*it);
    free_blocks.erase(it);
  } else {
    block = new_segment(size, stream);
  }
  const std::int64_t remaining = at(block).size - size;
  if (small ? remaining >= kMinBlockBytes : remaining > kSmallBytes) split(block, size);
  Block& b = at(block);
  b.used = true;
  allocated_ += b.size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return block;
}

CachingAllocator::Handle CachingAllocator::merge(Handle left, Handle right) {
  Block& l = at(left);
  const Block& r = at(right);
  l.size += r.size;
  l.next = r.next;
  if (l.next != kNone) at(l.next).previous = left;
  recycled_.push_back(right);
  return left;
}

void CachingAllocator::free(Handle block) {
  if (block == kNone) return;
  assert(at(block).used);
  at(block).used = false;
  allocated_ -= at(block).size;
  Pool& free_blocks = pool(at(block).small);
  const Handle previous = at(block).previous;
  const Handle next = at(block).next;
  if (previous != kNone && !at(previous).used) {
    free_blocks.erase(key(previous));
    block = merge(previous, block);
  }
  if (next != kNone && !at(next).used) {
    free_blocks.erase(key(next));
    block = merge(block, next);
  }
  free_blocks.insert(key(block));
}

void CachingAllocator::release_cached() {
  for (Pool* free_blocks : {&small_, &large_}) {
    for (auto it = free_blocks->begin(); it != free_blocks->end();) {
      const Handle handle = std::get<3>(*it);
      const Block& block = at(handle);
      if (block.previous != kNone || block.next != kNone) {
        ++it;
        continue;
      }
      reserved_ -= block.size;
      --segments_;
      recycled_.push_back(handle);
      it = free_blocks->erase(it);
    }
  }
}

}  // namespace foretrain
