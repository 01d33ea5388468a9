#include "model/program/schedules/schedule.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace foretrain {
namespace {

// "F0 F1 B0": chunk appended as ".1" when there are several.
std::string text(const TaskOrder& order, bool chunks = false) {
  std::string out;
  for (const ScheduledTask& t : order) {
    if (!out.empty()) out += " ";
    out += fmt::format("{}{}", t.forward ? "F" : "B", t.micro_batch);
    if (chunks) out += fmt::format(".{}", t.chunk);
  }
  return out;
}

// The most micro-batches (times chunks) whose forward has run and whose backward has not.
int peak_in_flight(const TaskOrder& order) {
  int now = 0, peak = 0;
  for (const ScheduledTask& t : order) {
    now += t.forward ? 1 : -1;
    peak = std::max(peak, now);
  }
  return peak;
}

TEST(Schedules, OneFOneBIsTheClassicDiagramOfFourStagesAndEightMicroBatches) {
  // Narayanan et al. 2021, figure 4 (top), read row by row.
  EXPECT_EQ(text(one_f_one_b_schedule(4, 0, 8)), "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  EXPECT_EQ(text(one_f_one_b_schedule(4, 1, 8)), "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7");
  EXPECT_EQ(text(one_f_one_b_schedule(4, 2, 8)), "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7");
  EXPECT_EQ(text(one_f_one_b_schedule(4, 3, 8)), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
}

TEST(Schedules, FewerMicroBatchesThanStagesOnlyWarmUpAndCoolDown) {
  EXPECT_EQ(text(one_f_one_b_schedule(4, 0, 2)), "F0 F1 B0 B1");
}

TEST(Schedules, SequentialAndGPipe) {
  EXPECT_EQ(text(sequential_schedule(3)), "F0 B0 F1 B1 F2 B2");
  EXPECT_EQ(text(gpipe_schedule(3)), "F0 F1 F2 B0 B1 B2");
}

TEST(Schedules, ActivationsInFlightArePForOneFOneBAndMForGPipe) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = p; m <= 12; ++m) {
      for (int s = 0; s < p; ++s) {
        EXPECT_EQ(peak_in_flight(one_f_one_b_schedule(p, s, m)), p - s);
        EXPECT_EQ(peak_in_flight(gpipe_schedule(m)), m);
        EXPECT_EQ(peak_in_flight(sequential_schedule(m)), 1);
      }
    }
  }
}

TEST(Schedules, InterleavedIsMegatronsOrder) {
  // Narayanan et al. 2021, figure 4 (bottom): two stages of two chunks, four micro-batches; warm-up of stage
  // 0 is 2 (p - 1) + (v - 1) p = 4, of stage 1 it is 2.
  EXPECT_EQ(text(interleaved_schedule(2, 0, 4, 2), true),
            "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  EXPECT_EQ(text(interleaved_schedule(2, 1, 4, 2), true),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

TEST(Schedules, InterleavedWarmUpFollowsMegatronsFormula) {
  for (int p = 2; p <= 5; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = p; m <= 3 * p; m += p) {
        for (int s = 0; s < p; ++s) {
          const TaskOrder order = interleaved_schedule(p, s, m, v);
          const auto first =
              std::find_if(order.begin(), order.end(), [](const ScheduledTask& t) { return !t.forward; });
          const int forwards = static_cast<int>(first - order.begin());
          const int warm_up = 2 * (p - s - 1) + (v - 1) * p;
          // Unless everything is warm-up, one more forward belongs to the first 1F1B pair.
          EXPECT_EQ(forwards, std::min(m * v, warm_up + 1)) << p << v << m << s;
        }
      }
    }
  }
}

TEST(Schedules, OneStageAccumulatesGradientsWhateverTheSchedule) {
  ParallelPlan plan;
  plan.schedule = PipelineSchedule::gpipe;
  EXPECT_EQ(text(task_order(plan, 0, 2)), "F0 B0 F1 B1");
}

TEST(Schedules, ForwardOnlyRanksRunNoBackwardButTheLastStageDoes) {
  ParallelPlan plan;
  plan.pp = 2;
  plan.schedule = PipelineSchedule::sequential;
  plan.pp_forward_only_ranks = true;
  EXPECT_EQ(text(task_order(plan, 0, 2)), "F0 F1");
  EXPECT_EQ(text(task_order(plan, 1, 2)), "F0 B0 F1 B1");
}

RC_GTEST_PROP(Schedules, EveryTaskRunsOnceAndBackwardsFollowTheirForwards, ()) {
  ParallelPlan plan;
  plan.pp = *rc::gen::inRange(1, 9);
  plan.schedule = *rc::gen::element(PipelineSchedule::sequential, PipelineSchedule::gpipe,
                                    PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved);
  const bool interleaved = plan.pp > 1 && plan.schedule == PipelineSchedule::interleaved;
  if (interleaved) plan.virtual_stages = *rc::gen::inRange(1, 5);
  const int m = *rc::gen::inRange(1, 7) * (interleaved ? plan.pp : 1);
  const int stage = *rc::gen::inRange(0, plan.pp);
  std::set<std::pair<int, int>> forwards, backwards;
  for (const ScheduledTask& t : task_order(plan, stage, m)) {
    RC_ASSERT(t.micro_batch >= 0 && t.micro_batch < m);
    RC_ASSERT(t.chunk >= 0 && t.chunk < plan.virtual_stages);
    const std::pair key(t.micro_batch, t.chunk);
    if (!t.forward) RC_ASSERT(forwards.count(key) == 1u);
    RC_ASSERT((t.forward ? forwards : backwards).insert(key).second);
  }
  RC_ASSERT(forwards.size() == static_cast<std::size_t>(m * plan.virtual_stages));
  RC_ASSERT(backwards.size() == forwards.size());
}

}  // namespace
}  // namespace foretrain
