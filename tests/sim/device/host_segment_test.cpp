// The (max, +) summary and the walk are compared with the recurrence written out kernel by kernel.
#include "sim/device/host_segment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace foretrain {
namespace {

struct Clock {
  std::int64_t host, device;
};

// host += a; device = max(device, host) + d, for every kernel, each kernel's work divided by the rate.
Clock kernel_by_kernel(const std::vector<KernelRun>& runs, Clock at, double rate = 1) {
  for (const KernelRun& run : runs) {
    for (std::int32_t k = 0; k < run.launches; ++k) {
      at.host += run.host_per_launch_ps;
      const auto time = static_cast<std::int64_t>(std::ceil(static_cast<double>(run.kernel_ps(k)) / rate));
      at.device = std::max(at.device, at.host) + time;
    }
  }
  return at;
}

rc::Gen<std::vector<KernelRun>> any_runs() {
  const auto run = rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<std::int64_t>(0, 1000), rc::gen::inRange<std::int64_t>(0, 300),
                     rc::gen::inRange<std::int32_t>(1, 6)),
      [](const auto& t) {
        return KernelRun{std::get<0>(t), std::get<1>(t), std::get<2>(t)};
      });
  return rc::gen::container<std::vector<KernelRun>>(run);
}

TEST(HostSegment, LaunchesShareTheDurationWithoutLoss) {
  const KernelRun run{10, 1, 3};
  EXPECT_EQ(run.kernel_ps(0) + run.kernel_ps(1) + run.kernel_ps(2), 10);
}

TEST(HostSegment, DeviceBoundRunTakesItsDeviceTime) {
  const std::vector<KernelRun> runs(5, KernelRun{100, 1, 1});
  EXPECT_EQ(segment_of(runs).device_out(0, 0), 1 + 500);
}

TEST(HostSegment, HostBoundRunTakesItsHostTimeAndTheLastKernel) {
  const std::vector<KernelRun> runs(5, KernelRun{1, 100, 1});
  EXPECT_EQ(segment_of(runs).device_out(0, 0), 500 + 1);
}

RC_GTEST_PROP(HostSegment, SummaryEqualsKernelByKernel, ()) {
  const auto runs = *any_runs();
  const Clock in{*rc::gen::inRange<std::int64_t>(0, 5000), *rc::gen::inRange<std::int64_t>(0, 5000)};
  const Clock out = kernel_by_kernel(runs, in);
  const Segment s = segment_of(runs);
  RC_ASSERT(in.host + s.host_ps == out.host);
  // An empty run leaves the device where it was; any other waits for the host at least once.
  RC_ASSERT((runs.empty() ? in.device : s.device_out(in.device, in.host)) == out.device);
}

RC_GTEST_PROP(HostSegment, ThenIsAssociative, ()) {
  const auto a = segment_of(*any_runs()), b = segment_of(*any_runs()), c = segment_of(*any_runs());
  RC_ASSERT(then(then(a, b), c) == then(a, then(b, c)));
}

RC_GTEST_PROP(SegmentWalk, EqualsKernelByKernelAtAnyConstantRate, ()) {
  const auto runs = *any_runs();
  const Clock in{*rc::gen::inRange<std::int64_t>(0, 5000), *rc::gen::inRange<std::int64_t>(0, 5000)};
  const double rate = 1.0 / *rc::gen::inRange(1, 5);
  const SegmentWalk walk(runs, in.device, in.host);
  RC_ASSERT(walk.end_at(rate) == kernel_by_kernel(runs, in, rate).device);
}

RC_GTEST_PROP(SegmentWalk, StopsOnTheWayDoNotChangeTheEnd, ()) {
  const auto runs = *any_runs();
  const Clock in{*rc::gen::inRange<std::int64_t>(0, 500), *rc::gen::inRange<std::int64_t>(0, 500)};
  SegmentWalk walk(runs, in.device, in.host);
  std::int64_t at = in.device;
  for (const std::int64_t step :
       *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 700))) {
    at += step;
    walk.advance(at, 1.0);
    if (walk.done()) break;
    RC_ASSERT(walk.end_at(1.0) == kernel_by_kernel(runs, in).device);
  }
  walk.advance(1'000'000'000, 1.0);
  RC_ASSERT(walk.done());
  RC_ASSERT(walk.clock_ps() == kernel_by_kernel(runs, in).device);
  // Busy and idle time make up the whole.
  RC_ASSERT(walk.idle_ps() + segment_of(runs).device_ps == walk.clock_ps() - in.device);
}

TEST(SegmentWalk, WorkDoneAtHalfRateTakesTwiceTheTimeFromThereOn) {
  const std::vector<KernelRun> runs{KernelRun{1000, 0, 1}};
  SegmentWalk walk(runs, 0, 0);
  walk.advance(400, 1.0);
  EXPECT_EQ(walk.end_at(0.5), 400 + 1200);
  walk.advance(800, 0.5);
  EXPECT_EQ(walk.end_at(1.0), 800 + 400);
}

TEST(SegmentWalk, RateZeroNeverEndsUnlessNothingIsLeft) {
  const std::vector<KernelRun> runs{KernelRun{10, 0, 1}};
  SegmentWalk walk(runs, 0, 0);
  EXPECT_EQ(walk.end_at(0), std::numeric_limits<std::int64_t>::max());
  walk.advance(100, 0);
  EXPECT_EQ(walk.end_at(1), 110);
}

TEST(SegmentWalk, TimesOfOpsAreRecorded) {
  const std::vector<KernelRun> runs{KernelRun{10, 5, 1}, KernelRun{4, 20, 2}};
  std::vector<SegmentWalk::OpTimes> times;
  SegmentWalk walk(runs, 0, 0, &times);
  walk.advance(1000, 1.0);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].start_ps, 5);
  EXPECT_EQ(times[0].end_ps, 15);
  EXPECT_EQ(times[1].start_ps, 25);  // issued at 5 + 20
  EXPECT_EQ(times[1].end_ps, 47);    // its second launch is issued at 45
}

}  // namespace
}  // namespace foretrain
