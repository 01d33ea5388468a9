// The event kernel: small records ordered by (time, priority, sequence), ties first-in first-out, and a
// hash of everything that was popped, by which determinism is tested. No global state; one queue per
// simulation; not thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/base/units.h"

namespace foretrain {

// Named priorities of events at one instant: what ends comes before what it lets begin.
enum class EventPriority : std::uint8_t { finish = 0, arrive = 1, start = 2, sample = 3 };

// What happens, to whom: `kind`, `a` and `b` mean what the owner of the queue says.
struct Event {
  Time time;
  std::uint64_t order = 0;  // priority in the top byte, sequence below: unique, so the order is total
  std::int32_t kind = 0;
  std::int32_t a = 0;
  std::int32_t b = 0;
  std::int32_t generation = 0;  // lets an owner recognise events that were overtaken
};

// A 4-ary heap of events.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  std::uint64_t popped() const { return popped_; }
  std::uint64_t hash() const { return hash_; }
  void reserve(std::size_t events) { heap_.reserve(events); }

  void push(Time time, EventPriority priority, std::int32_t kind, std::int32_t a = 0, std::int32_t b = 0,
            std::int32_t generation = 0) {
    Event event;
    event.time = time;
    event.order = (static_cast<std::uint64_t>(priority) << 56) | sequence_++;
    event.kind = kind;
    event.a = a;
    event.b = b;
    event.generation = generation;
    heap_.push_back(event);
    sift_up(heap_.size() - 1);
  }

  // The earliest event; the queue must not be empty. The popped event enters the hash unless `counts` is
  // false (an owner skips overtaken events by peeking first).
  const Event& top() const { return heap_.front(); }
  Event pop() {
    const Event event = heap_.front();
    mix(static_cast<std::uint64_t>(event.time.ps()));
    mix((static_cast<std::uint64_t>(static_cast<std::uint32_t>(event.kind)) << 32) |
        static_cast<std::uint32_t>(event.a));
    mix(static_cast<std::uint32_t>(event.b));
    ++popped_;
    drop();
    return event;
  }
  // Removes the earliest event without counting or hashing it.
  void discard() { drop(); }

 private:
  static bool before(const Event& x, const Event& y) {
    return x.time < y.time || (x.time == y.time && x.order < y.order);
  }
  void mix(std::uint64_t word) {
    hash_ ^= word + 0x9e3779b97f4a7c15ull + (hash_ << 6) + (hash_ >> 2);
    hash_ *= 0xff51afd7ed558ccdull;
    hash_ ^= hash_ >> 33;
  }
  void sift_up(std::size_t i) {
    const Event event = heap_[i];
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!before(event, heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = event;
  }
  void drop() {
    const Event event = heap_.back();
    heap_.pop_back();
    const std::size_t n = heap_.size();
    if (n == 0) return;
    std::size_t i = 0;
    for (;;) {
      const std::size_t first = 4 * i + 1;
      if (first >= n) break;
      std::size_t least = first;
      const std::size_t last = first + 4 < n ? first + 4 : n;
      for (std::size_t c = first + 1; c < last; ++c) {
        if (before(heap_[c], heap_[least])) least = c;
      }
      if (!before(heap_[least], event)) break;
      heap_[i] = heap_[least];
      i = least;
    }
    heap_[i] = event;
  }

  std::vector<Event> heap_;
  std::uint64_t sequence_ = 0;
  std::uint64_t popped_ = 0;
  std::uint64_t hash_ = 0x6a09e667f3bcc908ull;
};

}  // namespace foretrain
