// Chunks against closed forms, bounds, and an event-driven simulation of the same rings written here.
#include "sim/network/chunk.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "sim/kernel/event_queue.h"
#include "sim/network/collective_cost_bounds.h"

namespace foretrain {
namespace {

std::vector<ChunkEdge> uniform(std::size_t n, double gb_per_s, Time latency = {}) {
  return std::vector<ChunkEdge>(n, ChunkEdge{gb_per_s * 1e9, latency});
}

TEST(Chunk, RingOnUniformLinksEqualsItsClosedForm) {
  const double bytes = 256.0 * 1048576;
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    for (const std::int32_t n : {2, 3, 8, 64, 1024}) {
      const UniformLink link{Time::from_us(3), Bandwidth::gb_per_s(25)};
      // One chunk a step: nothing hides the latency.
      const ChunkRun run = simulate_ring(
          kind, bytes, n, uniform(static_cast<std::size_t>(n), 25, link.latency), std::int64_t{1} << 40);
      const ClosedForm closed = ring_closed_form(kind, Bytes(static_cast<std::int64_t>(bytes)), n, link);
      EXPECT_NEAR(run.total / closed.total, 1.0, 1e-3) << name_of(kind) << " " << n;
      EXPECT_EQ(run.transfers, std::int64_t{ring_steps(kind, n)} * n);
    }
  }
}

TEST(Chunk, ManyChunksHideLatencyButNeverTheBytes) {
  const auto edges = uniform(8, 25, Time::from_us(20));
  const double bytes = 1 << 30;
  const ChunkRun whole = simulate_ring(CollectiveKind::all_reduce, bytes, 8, edges, std::int64_t{1} << 40);
  const ChunkRun cut = simulate_ring(CollectiveKind::all_reduce, bytes, 8, edges, 8 << 20);
  EXPECT_LT(cut.total, whole.total);
  EXPECT_GE(cut.total.seconds(), 2.0 * 7 / 8 * bytes / 25e9);
}

TEST(Chunk, PipelinedChainCostsItsFill) {
  // 10 chunks over 4 edges: 10 + 3 chunk times and 4 latencies.
  const ChunkRun run =
      simulate_ring(CollectiveKind::broadcast, 10e6, 5, uniform(4, 1, Time::from_us(1)), 1'000'000);
  EXPECT_NEAR(run.total.us(), 13 * 1000.0 + 4, 0.01);
}

TEST(Chunk, SendIsBytesOverBandwidthAndOneLatency) {
  const ChunkRun run = simulate_ring(CollectiveKind::send_recv, 100e6, 2, uniform(1, 10, Time::from_us(5)));
  EXPECT_NEAR(run.total.us(), 10000.0 + 5, 0.01);
}

TEST(Chunk, OneSlowEdgeSetsThePaceOfTheRing) {
  auto edges = uniform(8, 100);
  edges[3].bytes_per_s = 10e9;
  const double bytes = 800e6;
  const ChunkRun run = simulate_ring(CollectiveKind::all_reduce, bytes, 8, edges);
  // 14 steps of 100 MB over the slow edge, and less than two steps over the fast ones to reach it.
  EXPECT_GE(run.total.ms(), 14 * 10.0);
  EXPECT_LE(run.total.ms(), 14 * 10.0 + 7 * 1.0);
}

TEST(Chunk, TreeOnUniformLinksIsDepthAndBytes) {
  // A complete binary tree of 7 vertices; 100 chunks of 1 ms: the root receives the last one after 100 + 1
  // chunk times (depth 2), the leaves have it two later; four latencies.
  const std::vector<std::int32_t> parents{-1, 0, 0, 1, 1, 2, 2};
  const auto edges = uniform(7, 1, Time::from_us(7));
  const ChunkRun all = simulate_tree(CollectiveKind::all_reduce, 100e6, parents, edges, edges, 1'000'000);
  EXPECT_NEAR(all.total.us(), 103 * 1000.0 + 4 * 7, 0.1);
  const ChunkRun up = simulate_tree(CollectiveKind::reduce, 100e6, parents, edges, edges, 1'000'000);
  EXPECT_NEAR(up.total.us(), 101 * 1000.0 + 2 * 7, 0.1);
  const ChunkRun down = simulate_tree(CollectiveKind::broadcast, 100e6, parents, edges, edges, 1'000'000);
  EXPECT_EQ(down.total, up.total);
}

TEST(Chunk, NothingToMoveTakesNoTime) {
  EXPECT_EQ(simulate_ring(CollectiveKind::all_reduce, 0, 4, uniform(4, 1)).total, Time{});
  EXPECT_EQ(simulate_ring(CollectiveKind::all_reduce, 100, 1, {}).total, Time{});
}

TEST(Chunk, EdgesWithoutBandwidthNeverEnd) {
  auto edges = uniform(4, 1);
  edges[2].bytes_per_s = 0;
  EXPECT_EQ(simulate_ring(CollectiveKind::all_reduce, 100, 4, edges).total, Time::max());
}

// The same ring as events: a transfer may start when its edge is free, all its predecessors on the edge have
// gone, and its data has arrived.
Time by_events(std::int32_t steps, std::int64_t chunks, double bytes, const std::vector<ChunkEdge>& edges) {
  struct Edge {
    std::size_t next = 0;  // in order
    bool busy = false;
  };
  const std::size_t n = edges.size();
  std::vector<std::pair<std::int32_t, std::int64_t>> order;  // step, chunk
  for (std::int64_t first = 0; first < chunks; first += 2) {
    for (std::int32_t s = 0; s < steps; ++s) {
      for (std::int64_t c = first; c < std::min(first + 2, chunks); ++c) order.emplace_back(s, c);
    }
  }
  std::map<std::tuple<std::size_t, std::int32_t, std::int64_t>, bool> arrived;  // at the head of an edge
  std::vector<Edge> state(n);
  EventQueue queue;
  enum { left, there };
  Time now, last;
  const auto begin = [&](std::size_t e) {
    Edge& edge = state[e];
    if (edge.busy || edge.next == order.size()) return;
    const auto [s, c] = order[edge.next];
    if (s > 0 && !arrived[{(e + n - 1) % n, s - 1, c}]) return;
    edge.busy = true;
    queue.push(now + detail::ceil_ps(bytes / edges[e].bytes_per_s), EventPriority::finish, left,
               static_cast<std::int32_t>(e));
  };
  for (std::size_t e = 0; e < n; ++e) begin(e);
  while (!queue.empty()) {
    const Event event = queue.pop();
    now = event.time;
    const auto e = static_cast<std::size_t>(event.a);
    if (event.kind == left) {
      queue.push(now + edges[e].latency, EventPriority::arrive, there, event.a,
                 static_cast<std::int32_t>(state[e].next));
      state[e].busy = false;
      ++state[e].next;
      begin(e);
    } else {
      last = now;
      const auto [s, c] = order[static_cast<std::size_t>(event.b)];
      arrived[{e, s, c}] = true;
      begin((e + 1) % n);
    }
  }
  return last;
}

RC_GTEST_PROP(Chunk, SweepEqualsAnEventDrivenSimulation, ()) {
  const auto n = *rc::gen::inRange(2, 7);
  const auto chunks = *rc::gen::inRange<std::int64_t>(1, 8);
  std::vector<ChunkEdge> edges;
  for (std::int32_t e = 0; e < n; ++e) {
    edges.push_back({*rc::gen::inRange(1, 100) * 1e8, Time::from_us(*rc::gen::inRange(0, 30))});
  }
  const double bytes = static_cast<double>(chunks) * n * 100'000;
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
    const ChunkRun run = simulate_ring(kind, bytes, n, edges, 100'000);
    RC_ASSERT(run.total == by_events(ring_steps(kind, n), chunks, 100'000, edges));
  }
}

RC_GTEST_PROP(Chunk, NoEdgeCarriesItsBytesFasterThanItsBandwidth, ()) {
  const auto n = *rc::gen::inRange(2, 40);
  std::vector<ChunkEdge> edges;
  double slowest = 1e30;
  for (std::int32_t e = 0; e < n; ++e) {
    edges.push_back({*rc::gen::inRange(1, 1000) * 1e8, Time::from_us(*rc::gen::inRange(0, 30))});
    slowest = std::min(slowest, edges.back().bytes_per_s);
  }
  const auto kind = *rc::gen::element(CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter);
  const double bytes = *rc::gen::inRange(1, 2'000'000'000);
  const auto chunk = *rc::gen::inRange<std::int64_t>(1000, 100'000'000);
  const ChunkRun run = simulate_ring(kind, bytes, n, edges, chunk);
  RC_ASSERT(run.total.seconds() >= bus_factor(kind, n) * bytes / slowest * (1 - 1e-12));
}

// --- Patterns on clusters
// --------------------------------------------------------------------------------------

Cluster hosts(std::int32_t n, bool shared_backbone) {
  Cluster cluster;
  cluster.name = "test";
  for (std::int32_t i = 0; i < n; ++i) {
    ClusterVertex vertex;
    vertex.name = fmt::format("gpu{}", i);
    vertex.node = i;
    cluster.vertices.push_back(vertex);
  }
  for (const char* name : {"left", "right"}) {
    ClusterVertex vertex;
    vertex.name = name;
    vertex.kind = VertexKind::network_switch;
    vertex.node = -1;
    cluster.vertices.push_back(vertex);
  }
  LinkSpec link;
  link.link_class = LinkClass::network;
  link.bandwidth = Bandwidth::gb_per_s(shared_backbone ? 1000 : 10);
  for (std::int32_t i = 0; i < n; ++i) {
    cluster.edges.push_back({i, shared_backbone && i % 2 == 1 ? n + 1 : n, link});
  }
  link.bandwidth = Bandwidth::gb_per_s(25);
  link.half_duplex = true;
  cluster.edges.push_back({n, n + 1, link});
  return cluster;
}

Profile ideal() {
  Profile profile = default_profile();
  profile.at(ParameterId::network_efficiency).value = 1;
  profile.at(ParameterId::collective_latency_us).value = 0;
  profile.at(ParameterId::hop_latency_us).value = 0;
  profile.at(ParameterId::half_bandwidth_message_mib).value = 0;
  return profile;
}

PatternKey all_of(std::int32_t n, CollectiveKind kind = CollectiveKind::all_reduce) {
  PatternKey key;
  key.kind = kind;
  key.groups.emplace_back();
  for (std::int32_t i = 0; i < n; ++i) key.groups[0].push_back(Rank{i});
  return key;
}

TEST(ChunkModel, EightHostsOnASharedBackboneTakeFourteenSteps) {
  const Cluster cluster = hosts(8, true);
  TransferPlan plan;
  plan.steps = 14;
  plan.work_bytes = 64.0 * 1048576;
  const ChunkRun run = ChunkModel(cluster).run(all_of(8), plan, 64 * kMiB, ideal());
  const double expected_ms = 14 * 64 * 1048576 / 25e9 * 1e3;  // 37.58
  EXPECT_NEAR(run.total.ms(), expected_ms, 0.01 * expected_ms);
}

TEST(ChunkModel, AgreesWithTheFluidPlanOnUniformLinks) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
    for (const std::int32_t n : {2, 4, 16}) {
      PatternSet set(hosts(n, false));
      const auto pattern = set.add(all_of(n, kind));
      ASSERT_TRUE(pattern.has_value());
      set.compress();
      const Bytes payload = 1024 * kMiB;
      const Profile profile = ideal();
      const TransferPlan plan = set.plan(*pattern, payload, profile);
      double rate = plan.rate_cap_bytes_per_s;
      for (const PatternSet::Use& use : set.uses(*pattern, plan.algorithm)) {
        rate = std::min(rate, set.capacities(profile)[static_cast<std::size_t>(use.constraint)] /
                                  use.bytes_per_work_byte);
      }
      const double fluid = plan.latency.seconds() + plan.work_bytes / rate;
      const ChunkRun run = ChunkModel(hosts(n, false)).run(set.key(*pattern), plan, payload, profile);
      EXPECT_NEAR(run.total.seconds() / fluid, 1.0, 0.03) << name_of(kind) << " " << n;
      EXPECT_GE(run.total, set.lower_bound(*pattern, payload, profile)) << name_of(kind) << " " << n;
    }
  }
}

RC_GTEST_PROP(ChunkModel, NeverBeatsTheLowerBound, ()) {
  ClusterSpec spec = *find_cluster(*rc::gen::element("8xa100_80_sxm", "8xa100_pcie", "4xa30_pcie"));
  spec.nodes = *rc::gen::inRange(1, 4);
  const Cluster cluster = build(spec);
  const std::int32_t n = *rc::gen::inRange(2, cluster.gpu_count() + 1);
  const auto kind = *rc::gen::element(CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                                      CollectiveKind::reduce, CollectiveKind::all_to_all);
  PatternSet set(cluster);
  const auto pattern = set.add(all_of(n, kind));
  RC_ASSERT(pattern.has_value());
  set.compress();
  const Bytes payload(*rc::gen::inRange<std::int64_t>(1, 1'000'000'000));
  const TransferPlan plan = set.plan(*pattern, payload, default_profile());
  const ChunkRun run = ChunkModel(cluster).run(set.key(*pattern), plan, payload, default_profile());
  RC_ASSERT(run.total.seconds() >=
            set.lower_bound(*pattern, payload, default_profile()).seconds() * (1 - 1e-9));
}

}  // namespace
}  // namespace foretrain
