#include <benchmark/benchmark.h>

#include "sim/network/chunk.h"

namespace foretrain {
namespace {

// The ring all-reduce of 1 GiB over 1,024 ranks, chunk by chunk: 2,046 steps x 1,024 edges and more.
void ring_of_1024_ranks(benchmark::State& state) {
  ClusterSpec spec = *find_cluster("8xh100_sxm");
  spec.nodes = 128;
  const Cluster cluster = build(spec);
  PatternKey key;
  key.groups.emplace_back();
  for (std::int32_t i = 0; i < 1024; ++i) key.groups[0].push_back(Rank{i});
  const Profile profile = default_profile();
  PatternSet set(cluster);
  const auto pattern = set.add(key);
  set.compress();
  TransferPlan plan = set.plan(*pattern, kGiB, profile);
  plan.algorithm = Algorithm::ring;
  std::int64_t transfers = 0;
  for (auto _ : state) {
    const ChunkModel model(cluster);
    const ChunkRun run = model.run(key, plan, kGiB, profile);
    benchmark::DoNotOptimize(run.total);
    transfers = run.transfers;
  }
  state.counters["transfers"] = static_cast<double>(transfers);
  state.counters["transfers_per_s"] =
      benchmark::Counter(static_cast<double>(transfers), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(ring_of_1024_ranks)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrain
