#include "sim/sharing/fair_share.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace foretrain {
namespace {

using Use = FairShare::Use;

TEST(FairShare, SharesOneLinkEqually) {
  FairShare share(std::vector<double>{90});
  const auto a = share.add(std::vector<Use>{{0, 1}});
  const auto b = share.add(std::vector<Use>{{0, 1}});
  const auto c = share.add(std::vector<Use>{{0, 1}});
  share.solve();
  for (const auto x : {a, b, c}) EXPECT_DOUBLE_EQ(share.rate(x), 30);
  share.remove(b);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(a), 45);
  EXPECT_DOUBLE_EQ(share.rate(c), 45);
  EXPECT_DOUBLE_EQ(share.utilisation(0), 1);
}

// The classic line of links (Bertsekas and Gallager, "Data Networks", section 6.5): one long flow over both
// links and one short flow on each. Link 0 holds 10, link 1 holds 4: the long flow gets 2, the short ones 8
// and 2.
TEST(FairShare, SolvesTheLineOfLinks) {
  FairShare share(std::vector<double>{10, 4});
  const auto flow = share.add(std::vector<Use>{{0, 1}, {1, 1}});
  const auto first = share.add(std::vector<Use>{{0, 1}});
  const auto second = share.add(std::vector<Use>{{1, 1}});
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(flow), 2);
  EXPECT_DOUBLE_EQ(share.rate(first), 8);
  EXPECT_DOUBLE_EQ(share.rate(second), 2);
}

TEST(FairShare, HonoursWeightsCapsAndCoefficients) {
  FairShare share(std::vector<double>{12});
  const auto heavy = share.add(std::vector<Use>{{0, 1}}, 2.0);
  const auto light = share.add(std::vector<Use>{{0, 1}}, 1.0);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(heavy), 8);
  EXPECT_DOUBLE_EQ(share.rate(light), 4);
  const auto capped = share.add(std::vector<Use>{{0, 3}}, 1.0, 0.5);  // uses 1.5 of the link
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(capped), 0.5);
  EXPECT_DOUBLE_EQ(share.rate(heavy), 7);
  EXPECT_DOUBLE_EQ(share.rate(light), 3.5);
}

TEST(FairShare, ReportsOnlyWhatChanged) {
  FairShare share(std::vector<double>{10, 10});
  const auto a = share.add(std::vector<Use>{{0, 1}});
  const auto b = share.add(std::vector<Use>{{1, 1}});
  share.solve();
  const auto c = share.add(std::vector<Use>{{1, 1}});
  const auto changed = share.solve();
  EXPECT_EQ(std::vector<std::int32_t>(changed.begin(), changed.end()), (std::vector<std::int32_t>{b, c}));
  EXPECT_DOUBLE_EQ(share.rate(a), 10);
  EXPECT_TRUE(share.solve().empty());
}

TEST(FairShare, AnActivityWithoutConstraintRunsAtItsCap) {
  FairShare share(std::vector<double>{});
  const auto a = share.add({}, 1.0, 7.0);
  share.solve();
  EXPECT_DOUBLE_EQ(share.rate(a), 7);
}

struct Case {
  std::vector<double> capacities;
  std::vector<std::vector<Use>> uses;
  std::vector<double> weights, caps;
};

rc::Gen<Case> cases() {
  return rc::gen::exec([] {
    Case c;
    const int links = *rc::gen::inRange(1, 6);
    for (int l = 0; l < links; ++l) c.capacities.push_back(*rc::gen::inRange(1, 100));
    const int flows = *rc::gen::inRange(1, 12);
    for (int f = 0; f < flows; ++f) {
      std::vector<Use> uses;
      for (int l = 0; l < links; ++l) {
        if (*rc::gen::inRange(0, 2) == 1) uses.push_back(Use{l, 1.0 + *rc::gen::inRange(0, 4)});
      }
      if (uses.empty()) uses.push_back(Use{0, 1});
      c.uses.push_back(std::move(uses));
      c.weights.push_back(1.0 + *rc::gen::inRange(0, 3));
      c.caps.push_back(*rc::gen::inRange(0, 3) == 0 ? 1.0 + *rc::gen::inRange(0, 20) : 0.0);
    }
    return c;
  });
}

// What max-min fairness means: nothing is over capacity, and every activity is either at its cap or crosses a
// full constraint on which nobody has a larger normalised rate.
RC_GTEST_PROP(FairShare, IsMaxMinFair, ()) {
  const Case c = *cases();
  FairShare share(c.capacities);
  std::vector<std::int32_t> handles;
  for (std::size_t f = 0; f < c.uses.size(); ++f)
    handles.push_back(share.add(c.uses[f], c.weights[f], c.caps[f]));
  share.solve();
  std::vector<double> load(c.capacities.size(), 0), highest(c.capacities.size(), 0);
  for (std::size_t f = 0; f < c.uses.size(); ++f) {
    for (const Use& use : c.uses[f]) {
      const std::size_t l = static_cast<std::size_t>(use.constraint);
      load[l] += use.coefficient * share.rate(handles[f]);
      highest[l] = std::max(highest[l], share.rate(handles[f]) / c.weights[f]);
    }
  }
  for (std::size_t l = 0; l < load.size(); ++l) RC_ASSERT(load[l] <= c.capacities[l] * (1 + 1e-9));
  for (std::size_t f = 0; f < c.uses.size(); ++f) {
    const double rate = share.rate(handles[f]);
    bool bottleneck = c.caps[f] > 0 && rate >= c.caps[f] * (1 - 1e-9);
    for (const Use& use : c.uses[f]) {
      const std::size_t l = static_cast<std::size_t>(use.constraint);
      bottleneck = bottleneck || (load[l] >= c.capacities[l] * (1 - 1e-9) &&
                                  rate / c.weights[f] >= highest[l] * (1 - 1e-9));
    }
    RC_ASSERT(bottleneck);
  }
}

// Adding and removing in any order ends where a fresh solver with the same activities ends.
RC_GTEST_PROP(FairShare, IncrementalEqualsFromScratch, ()) {
  const Case c = *cases();
  FairShare incremental(c.capacities);
  std::vector<std::int32_t> handles;
  for (std::size_t f = 0; f < c.uses.size(); ++f) {
    handles.push_back(incremental.add(c.uses[f], c.weights[f], c.caps[f]));
    incremental.solve();
  }
  const std::size_t leaves = *rc::gen::inRange<std::size_t>(0, c.uses.size());
  incremental.remove(handles[leaves]);
  incremental.solve();
  FairShare fresh(c.capacities);
  for (std::size_t f = 0; f < c.uses.size(); ++f) {
    if (f == leaves) continue;
    const auto handle = fresh.add(c.uses[f], c.weights[f], c.caps[f]);
    fresh.solve();
    (void)handle;
  }
  std::size_t at = 0;
  for (std::size_t f = 0; f < c.uses.size(); ++f) {
    if (f == leaves) continue;
    const double expected = fresh.rate(static_cast<std::int32_t>(at++));
    RC_ASSERT(std::abs(incremental.rate(handles[f]) - expected) <= 1e-9 * (1 + expected));
  }
}

}  // namespace
}  // namespace foretrain
