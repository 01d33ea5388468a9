// Events a second of the kernel with a steady number of events waiting: pop one, push one in its future.
#include "sim/kernel/event_queue.h"

#include <benchmark/benchmark.h>

namespace foretrain {
namespace {

void hold(benchmark::State& state) {
  EventQueue queue;
  std::uint64_t random = 1;
  const auto next = [&] {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return static_cast<std::int64_t>(random % 1000000);
  };
  for (std::int64_t i = 0; i < state.range(0); ++i)
    queue.push(Time::from_ps(next()), EventPriority::start, 1);
  for (auto _ : state) {
    const Event event = queue.pop();
    queue.push(event.time + Time::from_ps(next()), EventPriority::start, event.kind, event.a + 1);
  }
  state.SetItemsProcessed(state.iterations());
  benchmark::DoNotOptimize(queue.hash());
}
BENCHMARK(hold)->Arg(16)->Arg(1024)->Arg(65536);

}  // namespace
}  // namespace foretrain
