// The NCCL cost model against closed forms, lower bounds and hand-computed NCCL tuner latencies.
#include "sim/network/collective_cost.h"

#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/network/collective_cost_bounds.h"

namespace foretrain {
namespace {

constexpr std::array kKinds{CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                            CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                            CollectiveKind::reduce,         CollectiveKind::all_to_all,
                            CollectiveKind::send_recv};

CollectiveParameters machine(double latency_scale, double gb_per_s, double ratio) {
  CollectiveParameters parameters;
  parameters.latency_scale = latency_scale;
  parameters.bus_bandwidth = Bandwidth::gb_per_s(gb_per_s);
  parameters.protocol_ratio = ratio;
  return parameters;
}

// Random machine, group and payload.
struct Draw {
  CollectiveKind kind;
  Bytes bytes;
  CollectiveGroup group;
  CollectiveParameters parameters;
};
Draw drawn() {
  Draw draw;
  draw.kind = *rc::gen::elementOf(kKinds);
  draw.bytes = Bytes(*rc::gen::inRange<std::int64_t>(1, 1 << 20) << *rc::gen::inRange(0, 16));
  draw.group.nodes = *rc::gen::inRange(1, 65);
  draw.group.ranks = draw.group.nodes * *rc::gen::inRange(1, 17);
  draw.group.nvlink = *rc::gen::arbitrary<bool>();
  draw.group.in_switch_reduce = draw.group.nvlink && *rc::gen::arbitrary<bool>();
  draw.parameters = machine(*rc::gen::inRange(0, 500) * 0.01, *rc::gen::inRange(1, 9000) * 0.1,
                            *rc::gen::inRange(50, 900) * 0.01);
  draw.parameters.max_channels = *rc::gen::inRange(1, 65);
  draw.parameters.channel_bandwidth = Bandwidth::gb_per_s(*rc::gen::inRange(0, 300) * 0.1);
  return draw;
}

TEST(CollectiveBounds, FactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_to_all, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::broadcast, 5), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::send_recv, 2), 1.0);
  for (const auto kind : kKinds) EXPECT_EQ(bus_factor(kind, 1), 0.0);
}

TEST(CollectiveBounds, SharedBackboneOfTheProductBrief) {
  // Eight hosts, 64 MiB: every one of the 14 steps moves eight chunks of 8 MiB over one 25 GB/s backbone.
  const UniformLink share{Time{}, Bandwidth::gb_per_s(25.0 / 8)};
  const auto ring = ring_closed_form(CollectiveKind::all_reduce, 64 * kMiB, 8, share);
  EXPECT_EQ(ring.steps, 14);
  EXPECT_NEAR(ring.total.ms(), 14 * 67108864 / 25e9 * 1e3, 1e-6);
  EXPECT_NEAR(ring.total.ms(), 37.58, 0.005);
}

TEST(CollectiveBounds, RingAndTreeByHand) {
  const UniformLink link{Time::from_us(5), Bandwidth::gb_per_s(10)};
  const auto ring = ring_closed_form(CollectiveKind::all_reduce, Bytes(1'000'000), 4, link);
  EXPECT_DOUBLE_EQ(ring.total.us(), 6 * 5 + 150);
  const auto gather = ring_closed_form(CollectiveKind::all_gather, Bytes(1'000'000), 4, link);
  EXPECT_DOUBLE_EQ(gather.total.us(), 3 * 5 + 75);
  const auto tree = tree_closed_form(CollectiveKind::all_reduce, Bytes(1'000'000), 16, link);
  ASSERT_TRUE(tree.has_value());
  EXPECT_DOUBLE_EQ(tree->total.us(), 2 * 4 * 5 + 200);
  EXPECT_EQ(tree_depth(17), 5);
  EXPECT_FALSE(tree_closed_form(CollectiveKind::all_gather, Bytes(8), 4, link).has_value());
  EXPECT_EQ(ring_closed_form(CollectiveKind::all_reduce, Bytes(8), 2, {Time{}, Bandwidth{}}).total,
            Time::max());
}

RC_GTEST_PROP(CollectiveBounds, ClosedFormsNeverBreakTheBandwidthBound, ()) {
  const Draw d = drawn();
  const UniformLink link{Time::from_us(*rc::gen::inRange(0, 100)), d.parameters.bus_bandwidth};
  const Time bound = bandwidth_lower_bound(d.kind, d.bytes, d.group.ranks, link.bandwidth);
  RC_ASSERT(ring_closed_form(d.kind, d.bytes, d.group.ranks, link).total >= bound);
  if (const auto tree = tree_closed_form(d.kind, d.bytes, d.group.ranks, link))
    RC_ASSERT(tree->total >= bound);
}

RC_GTEST_PROP(CollectiveCost, NeverBreaksTheBandwidthBoundForAnySizeRanksAndChannels, ()) {
  const Draw d = drawn();
  for (const auto& way : candidates(d.kind, d.bytes, d.group, d.parameters)) {
    const bool nvls = way.algorithm == Algorithm::nvls;
    const auto bound = nvls ? in_switch_lower_bound : bandwidth_lower_bound;
    RC_ASSERT(way.total >= bound(d.kind, d.bytes, d.group.ranks, d.parameters.bus_bandwidth));
    RC_ASSERT(way.total == way.latency + way.bandwidth);
    RC_ASSERT(way.latency >= Time{});
    RC_ASSERT(way.channels >= 1 && way.channels <= d.parameters.max_channels);
    if (d.parameters.channel_bandwidth.bytes_per_s() > 0) {
      const auto all_channels = d.parameters.channel_bandwidth * d.parameters.max_channels;
      // One ulp of the product is allowed for.
      RC_ASSERT(way.total * 1.000001 >= bound(d.kind, d.bytes, d.group.ranks, all_channels));
    }
  }
}

RC_GTEST_PROP(CollectiveCost, MoreBytesOrLessBandwidthNeverTakeLessTime, ()) {
  const Draw d = drawn();
  const Time base = cost(d.kind, d.bytes, d.group, d.parameters).total;
  const Bytes more = d.bytes + Bytes(*rc::gen::inRange<std::int64_t>(0, 1 << 22));
  RC_ASSERT(cost(d.kind, more, d.group, d.parameters).total + Time::from_ps(2) >= base);
  auto slower = d.parameters;
  slower.bus_bandwidth = slower.bus_bandwidth * 0.7;
  RC_ASSERT(cost(d.kind, d.bytes, d.group, slower).total + Time::from_ps(2) >= base);
  auto later = d.parameters;
  later.latency_scale *= 1.5;
  RC_ASSERT(cost(d.kind, d.bytes, d.group, later).total + Time::from_ps(2) >= base);
}

RC_GTEST_PROP(CollectiveCost, IsTheCheapestCandidate, ()) {
  const Draw d = drawn();
  const auto ways = candidates(d.kind, d.bytes, d.group, d.parameters);
  const auto chosen = cost(d.kind, d.bytes, d.group, d.parameters);
  for (const auto& way : ways) RC_ASSERT(chosen.total <= way.total + Time::from_ps(2));
  RC_ASSERT(std::abs(cost_seconds(d.kind, static_cast<double>(d.bytes.count()), d.group, d.parameters) -
                     chosen.total.seconds()) <= 3e-12 + 1e-9 * chosen.total.seconds());
}

TEST(CollectiveCost, WithoutLatencyTheRingIsItsClosedForm) {
  const auto parameters = machine(0, 12, 2);
  for (const auto kind : kKinds) {
    const std::int32_t ranks = kind == CollectiveKind::send_recv ? 2 : 4;
    const auto time = cost(kind, 64 * kMiB, {ranks, 1, false, false}, parameters);
    EXPECT_EQ(time.total, bandwidth_lower_bound(kind, 64 * kMiB, ranks, parameters.bus_bandwidth));
    EXPECT_EQ(time.algorithm, Algorithm::ring);
    EXPECT_EQ(time.protocol, Protocol::simple);
  }
}

TEST(CollectiveCost, SmallMessagesHaveTheLatencyOfNcclsTuner) {
  // Ring LL over PCIe, 4 ranks: 6.6 + 6 * 1.0; tree LL128 over 2 machines of 8 NVLink ranks: 6.8 + 2(7*0.6 +
  // 5).
  const auto pcie = cost(CollectiveKind::all_reduce, Bytes(8), {4, 1, false, false}, machine(1, 12, 2));
  EXPECT_NEAR(pcie.total.us(), 12.6, 0.01);
  EXPECT_EQ(pcie.protocol, Protocol::ll);
  EXPECT_EQ(pcie.steps, 6);
  const auto two = cost(CollectiveKind::all_reduce, Bytes(8), {16, 2, true, false}, machine(1, 200, 2));
  EXPECT_NEAR(two.total.us(), 25.2, 0.1);
  EXPECT_EQ(two.algorithm, Algorithm::tree);
  EXPECT_EQ(two.protocol, Protocol::ll128);
}

TEST(CollectiveCost, ProtocolGoesFromLowLatencyToSimpleAsSizeGrows) {
  const CollectiveGroup group{4, 1, false, false};
  const auto parameters = machine(1.6, 11, 3);
  bool simple = false;
  for (std::int64_t size = 8; size <= std::int64_t{1} << 32; size *= 2) {
    const auto time = cost(CollectiveKind::all_reduce, Bytes(size), group, parameters);
    if (simple) {
      EXPECT_EQ(time.protocol, Protocol::simple);
    }
    simple = time.protocol == Protocol::simple;
  }
  EXPECT_TRUE(simple);
}

TEST(CollectiveCost, LlSendsAFlagWithEveryWord) {
  const auto ways =
      candidates(CollectiveKind::all_reduce, Bytes(1000), {2, 1, false, false}, machine(1, 10, 2));
  ASSERT_EQ(ways.size(), 2u);
  EXPECT_EQ(ways[0].protocol, Protocol::ll);
  EXPECT_EQ(ways[0].wire_bytes_per_rank, Bytes(2000));
  EXPECT_EQ(ways[1].wire_bytes_per_rank, Bytes(1000));
}

TEST(CollectiveCost, OneRankOrNoBytesTakeNoTime) {
  const auto parameters = machine(1, 10, 2);
  EXPECT_EQ(cost(CollectiveKind::all_reduce, kGiB, {1, 1, false, false}, parameters).total, Time{});
  EXPECT_EQ(cost(CollectiveKind::all_reduce, Bytes(0), {8, 1, false, false}, parameters).total, Time{});
  EXPECT_EQ(cost(CollectiveKind::all_reduce, Bytes(-5), {8, 1, false, false}, parameters).total, Time{});
  EXPECT_EQ(cost(CollectiveKind::all_reduce, kGiB, {8, 1, false, false}, machine(1, 0, 2)).total,
            Time::max());
}

TEST(CollectiveCost, ChannelsGrowWithSizeAndLimitTheRate) {
  EXPECT_EQ(channels_for(Bytes(100), 4, Algorithm::ring, Protocol::ll, 24), 1);
  EXPECT_EQ(channels_for(Bytes(8 * 512 * 4 * 3), 4, Algorithm::ring, Protocol::ll, 24), 3);
  EXPECT_EQ(channels_for(kGiB, 4, Algorithm::ring, Protocol::simple, 24), 24);
  auto parameters = machine(1, 100, 2);
  parameters.channel_bandwidth = Bandwidth::gb_per_s(20);
  parameters.max_channels = 2;
  const auto time = cost(CollectiveKind::broadcast, kGiB, {2, 1, true, false}, parameters);
  EXPECT_NEAR(time.bandwidth.seconds(), 1073741824 / 40e9, 1e-9);
}

}  // namespace
}  // namespace foretrain
