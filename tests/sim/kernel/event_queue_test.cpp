#include "sim/kernel/event_queue.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <tuple>

namespace foretrain {
namespace {

TEST(EventQueue, OrdersByTimeThenPriorityThenArrival) {
  EventQueue queue;
  queue.push(Time::from_ps(5), EventPriority::start, 1);
  queue.push(Time::from_ps(5), EventPriority::finish, 2);
  queue.push(Time::from_ps(3), EventPriority::sample, 3);
  queue.push(Time::from_ps(5), EventPriority::finish, 4);
  std::vector<int> kinds;
  while (!queue.empty()) kinds.push_back(queue.pop().kind);
  EXPECT_EQ(kinds, (std::vector<int>{3, 2, 4, 1}));
}

RC_GTEST_PROP(EventQueue, PopsInTheOrderOfAStableSort,
              (const std::vector<std::pair<std::uint8_t, std::uint8_t>>& events)) {
  EventQueue queue;
  std::vector<std::tuple<int, int, int>> expected;
  int sequence = 0;
  for (const auto& [time, priority] : events) {
    const auto p = static_cast<EventPriority>(priority % 4);
    queue.push(Time::from_ps(time), p, sequence);
    expected.emplace_back(time, static_cast<int>(p), sequence++);
  }
  std::sort(expected.begin(), expected.end());
  for (const auto& [time, priority, kind] : expected) {
    const Event event = queue.pop();
    RC_ASSERT(event.time.ps() == time);
    RC_ASSERT(event.kind == kind);
  }
  RC_ASSERT(queue.empty());
}

RC_GTEST_PROP(EventQueue, HashTellsOrdersApart, (std::vector<std::uint8_t> kinds)) {
  const auto hash_of = [](const std::vector<std::uint8_t>& list) {
    EventQueue queue;
    std::int64_t time = 0;
    for (const std::uint8_t kind : list) queue.push(Time::from_ps(time++), EventPriority::start, kind);
    while (!queue.empty()) queue.pop();
    return queue.hash();
  };
  RC_ASSERT(hash_of(kinds) == hash_of(kinds));
  std::vector<std::uint8_t> reversed(kinds.rbegin(), kinds.rend());
  if (reversed != kinds) RC_ASSERT(hash_of(kinds) != hash_of(reversed));
}

TEST(EventQueue, DiscardedEventsLeaveNoTrace) {
  EventQueue a, b;
  a.push(Time::from_ps(1), EventPriority::start, 1);
  b.push(Time::from_ps(0), EventPriority::start, 9);
  b.push(Time::from_ps(1), EventPriority::start, 1);
  b.discard();
  a.pop();
  b.pop();
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_EQ(a.popped(), b.popped());
}

}  // namespace
}  // namespace foretrain
