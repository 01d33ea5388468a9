// Patterns on real topologies against closed forms, bounds and counting.
#include "sim/network/pattern.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include <fmt/format.h>

#include "model/plan/mesh.h"
#include "sim/network/flows.h"
#include "sim/network/topology.h"

namespace foretrain {
namespace {

// n hosts of one GPU around one switch.
Cluster star(std::int32_t n, double gb_per_s, bool half_duplex = false) {
  Cluster cluster;
  cluster.name = "star";
  for (std::int32_t i = 0; i < n; ++i) {
    cluster.vertices.push_back(ClusterVertex{fmt::format("gpu{}", i), VertexKind::gpu, i, {}});
  }
  cluster.vertices.push_back(ClusterVertex{"switch", VertexKind::network_switch, -1, {}});
  LinkSpec link;
  link.link_class = LinkClass::network;
  link.bandwidth = Bandwidth::gb_per_s(gb_per_s);
  link.half_duplex = half_duplex;
  for (std::int32_t i = 0; i < n; ++i) cluster.edges.push_back(ClusterEdge{i, n, link});
  return cluster;
}

Profile ideal() {
  Profile profile = default_profile();
  for (const ParameterId id :
       {ParameterId::pcie_efficiency, ParameterId::nvlink_efficiency, ParameterId::network_efficiency}) {
    profile.at(id).value = 1.0;
  }
  return profile;
}

PatternKey all_of(std::int32_t n, CollectiveKind kind = CollectiveKind::all_reduce) {
  PatternKey key;
  key.kind = kind;
  key.groups.emplace_back();
  for (std::int32_t i = 0; i < n; ++i) key.groups[0].push_back(Rank{i});
  return key;
}

// By value: a loop over the temporary's own route would outlive it.
Route route_of(const Topology& topology, std::int32_t from, std::int32_t to) {
  const auto route = topology.route(from, to);
  EXPECT_TRUE(route);
  return route.value_or(Route{});
}

double flow_seconds(const TransferPlan& plan) { return plan.work_bytes / plan.rate_cap_bytes_per_s; }

TEST(Pattern, RingAllReduceOnUniformLinksTakesItsClosedForm) {
  for (const std::int32_t n : {2, 3, 4, 8, 17, 64}) {
    PatternSet set(star(n, 10));
    const auto pattern = set.add(all_of(n));
    ASSERT_TRUE(pattern);
    set.compress();
    const Bytes payload(std::int64_t{1} << 30);
    const TransferPlan plan = set.plan(*pattern, payload, ideal());
    const double closed = 2.0 * (n - 1) / n * static_cast<double>(payload.count()) / 10e9;
    EXPECT_NEAR(flow_seconds(plan), closed, 0.001 * closed) << n;
  }
}

TEST(Pattern, EveryKindMovesTheBytesOfItsClosedForm) {
  const std::int32_t n = 8;
  const std::pair<CollectiveKind, double> kinds[] = {
      {CollectiveKind::all_reduce, 2.0 * 7 / 8}, {CollectiveKind::all_gather, 7.0 / 8},
      {CollectiveKind::reduce_scatter, 7.0 / 8}, {CollectiveKind::all_to_all, 7.0 / 8},
      {CollectiveKind::broadcast, 1.0},          {CollectiveKind::reduce, 1.0}};
  for (const auto& [kind, factor] : kinds) {
    PatternSet set(star(n, 10));
    const auto pattern = set.add(all_of(n, kind));
    ASSERT_TRUE(pattern);
    set.compress();
    double most = 0;
    for (const PatternSet::Use& use : set.uses(*pattern, Algorithm::ring))
      most = std::max(most, use.bytes_per_work_byte);
    EXPECT_NEAR(most, factor, 1e-12) << name_of(kind);
  }
}

// Two switches, four hosts on each, one backbone between them that all traffic shares in both directions; the
// ring alternates between the sides, so that every transfer crosses the backbone: 14 steps of 64 MiB over 25
// GB/s.
TEST(Pattern, EightHostsOnASharedBackbone) {
  Cluster cluster;
  cluster.name = "backbone";
  for (std::int32_t i = 0; i < 8; ++i) {
    cluster.vertices.push_back(ClusterVertex{fmt::format("gpu{}", i), VertexKind::gpu, i, {}});
  }
  cluster.vertices.push_back(ClusterVertex{"left", VertexKind::network_switch, -1, {}});
  cluster.vertices.push_back(ClusterVertex{"right", VertexKind::network_switch, -1, {}});
  LinkSpec fast;
  fast.link_class = LinkClass::network;
  fast.bandwidth = Bandwidth::gb_per_s(1000);
  LinkSpec backbone = fast;
  backbone.bandwidth = Bandwidth::gb_per_s(25);
  backbone.half_duplex = true;
  for (std::int32_t i = 0; i < 8; ++i) cluster.edges.push_back(ClusterEdge{i, i % 2 == 0 ? 8 : 9, fast});
  cluster.edges.push_back(ClusterEdge{8, 9, backbone});
  PatternSet set(cluster);
  const auto pattern = set.add(all_of(8));
  ASSERT_TRUE(pattern);
  set.compress();
  const TransferPlan plan = set.plan(*pattern, kMiB * 64, ideal());
  const double expected = 14 * 64.0 * 1048576 / 25e9;  // 37.58 ms
  EXPECT_NEAR(flow_seconds(plan), expected, 0.01 * expected);
}

RC_GTEST_PROP(Pattern, NothingIsFasterThanTheLowerBound, ()) {
  const std::int32_t nodes = *rc::gen::inRange(1, 5);
  const std::int32_t gpus = *rc::gen::element(1, 2, 4, 8);
  const std::int32_t nics = *rc::gen::inRange(1, gpus + 1);
  const char* preset = *rc::gen::element("8xh100_sxm", "8xa100_pcie", "8xv100_sxm", "4xrtx4090");
  ClusterSpec spec = *find_cluster(preset);
  spec.nodes = nodes;
  spec.gpus_per_node = gpus;
  spec.nics_per_node = nics;
  spec.sockets = std::min(spec.sockets, gpus);
  spec.gpus_per_pcie_switch = std::min(spec.gpus_per_pcie_switch, gpus);
  if (nodes * gpus < 2) return;
  const auto kind = *rc::gen::element(CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                                      CollectiveKind::reduce, CollectiveKind::all_to_all);
  PatternSet set(build(spec));
  const auto pattern = set.add(all_of(nodes * gpus, kind));
  RC_ASSERT(pattern.has_value());
  set.compress();
  const Bytes payload(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 32));
  const TransferPlan plan = set.plan(*pattern, payload, default_profile());
  RC_ASSERT(plan.latency.seconds() + flow_seconds(plan) >=
            set.lower_bound(*pattern, payload, default_profile()).seconds() * (1 - 1e-9));
}

// The constraints after compression carry the same loads: the bottleneck is the same as that of the routes.
RC_GTEST_PROP(Pattern, CompressionKeepsTheBottleneck, ()) {
  ClusterSpec spec = *find_cluster("8xa100_80_sxm");
  spec.nodes = *rc::gen::inRange(1, 9);
  const Cluster cluster = build(spec);
  const std::int32_t n = cluster.gpu_count();
  PatternSet set(cluster);
  const auto pattern = set.add(all_of(n));
  RC_ASSERT(pattern.has_value());
  set.compress();
  const Topology topology(cluster);
  std::map<std::int32_t, double> loads;
  for (const Flow& flow : ring_flows(CollectiveKind::all_reduce, all_of(n).groups[0], topology)) {
    for (const RouteUse& use : route_of(topology, flow.from, flow.to))
      loads[use.constraint] += flow.share * use.times;
  }
  const Profile profile = default_profile();
  double slowest = 0;
  for (const auto& [constraint, load] : loads) {
    slowest = std::max(slowest, load / capacity_bytes_per_s(topology.class_of(constraint),
                                                            topology.bandwidth_of(constraint), profile));
  }
  const std::vector<double> capacities = set.capacities(profile);
  double compressed = 0;
  for (const PatternSet::Use& use : set.uses(*pattern, Algorithm::ring)) {
    compressed =
        std::max(compressed, use.bytes_per_work_byte / capacities[static_cast<std::size_t>(use.constraint)]);
  }
  RC_ASSERT(std::abs(compressed - slowest) <= 1e-12 * slowest);
}

TEST(Pattern, SixteenThousandRanksAreAFewHundredConstraints) {
  ClusterSpec spec = *find_cluster("8xh100_sxm");
  spec.nodes = 2048;
  PatternSet set(build(spec));
  const Mesh mesh{{16, 128, 1, 8}};
  for (const MeshDims dims : {mesh_dims(MeshDim::dp), mesh_dims(MeshDim::tp)}) {
    std::map<std::int32_t, PatternKey> by_stage;
    for (auto& group : mesh.groups(dims))
      by_stage[mesh.coordinate(group[0], MeshDim::pp)].groups.push_back(std::move(group));
    for (const auto& [stage, key] : by_stage) ASSERT_TRUE(set.add(key));
  }
  set.compress();
  EXPECT_LT(set.constraint_count(), 500);
}

TEST(Flows, EveryBinaryTreeReachesAllAndHasLogarithmicDepth) {
  for (std::int32_t n = 1; n <= 200; ++n) {
    const auto parents = binary_tree_parents(n);
    EXPECT_EQ(parents[0], -1);
    for (std::int32_t v = 1; v < n; ++v) {
      std::int32_t at = v;
      int depth = 0;
      while (at != 0 && depth <= 20) {
        at = parents[static_cast<std::size_t>(at)];
        ++depth;
        ASSERT_GE(at, 0);
      }
      EXPECT_EQ(at, 0);
      EXPECT_LE(depth, 9) << n;
    }
  }
}

// Every rank of an all_reduce tree but the roots sends its half up once per tree, and gets the result down
// again.
TEST(Flows, TreesMoveTwicePayloadPerRankExceptAtTheRoots) {
  const Topology topology(star(8, 10));
  double sent = 0;
  for (const Flow& flow : tree_flows(CollectiveKind::all_reduce, all_of(8).groups[0], topology))
    sent += flow.share;
  EXPECT_DOUBLE_EQ(sent, 2 * 7.0);  // up and down, 7 edges in each of two half-weight trees
}

TEST(Topology, PrefersNvlinkThenPcieAndUsesEachGpusOwnNic) {
  ClusterSpec spec = *find_cluster("8xa100_80_sxm");
  spec.nodes = 2;
  const Topology topology(build(spec));
  const auto classes = [&](std::int32_t a, std::int32_t b) {
    std::multiset<LinkClass> set;
    for (const RouteUse& use : route_of(topology, a, b)) set.insert(topology.class_of(use.constraint));
    return set;
  };
  EXPECT_EQ(classes(0, 7), (std::multiset<LinkClass>{LinkClass::nvlink, LinkClass::nvlink}));
  const auto between = classes(0, 8);
  EXPECT_EQ(between.count(LinkClass::network), 2u);
  EXPECT_EQ(between.count(LinkClass::nvlink), 0u);
  // Two GPUs with different NICs share no network link on the way to their peers in the other machine.
  std::set<std::int32_t> first;
  for (const RouteUse& use : route_of(topology, 0, 8)) {
    if (topology.class_of(use.constraint) == LinkClass::network) first.insert(use.constraint);
  }
  for (const RouteUse& use : route_of(topology, 5, 13)) EXPECT_FALSE(first.contains(use.constraint));
}

TEST(Topology, WithoutPeerToPeerEveryCopyCrossesHostMemoryTwice) {
  const Topology topology(build(*find_cluster("4xrtx4090")));
  int most = 0;
  for (const RouteUse& use : route_of(topology, 0, 1)) most = std::max(most, use.times);
  EXPECT_EQ(most, 2);
}

TEST(Topology, BothDirectionsOfAHalfDuplexLinkAreOneConstraint) {
  const Topology topology(star(3, 10, true));
  const Route there = route_of(topology, 0, 1);
  const Route back = route_of(topology, 1, 0);
  std::set<std::int32_t> a, b;
  for (const RouteUse& use : there) a.insert(use.constraint);
  for (const RouteUse& use : back) b.insert(use.constraint);
  EXPECT_EQ(a, b);
  const Topology full(star(3, 10));
  for (const RouteUse& use : route_of(full, 0, 1)) {
    for (const RouteUse& other : route_of(full, 1, 0)) EXPECT_NE(use.constraint, other.constraint);
  }
}

TEST(Topology, SaysWhenThereIsNoRoute) {
  Cluster cluster = star(3, 10);
  cluster.edges.pop_back();
  PatternSet set(cluster);
  const auto pattern = set.add(all_of(3));
  ASSERT_FALSE(pattern);
  EXPECT_NE(pattern.error().find("not connected"), std::string::npos);
}

}  // namespace
}  // namespace foretrain
