// Real schedules with stages of known length and free communication: closed forms of the bubble, peak
// activations in flight, and, for random stage times, an independent list scheduler.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/engine/simulate.h"
#include "tests/sim/engine/hand_made.h"

namespace foretrain {
namespace {

// Time of a forward and a backward of one layer of a stage.
struct StageTime {
  std::int64_t forward = 0, backward = 0;
};

// The program of a plan, with the device time of every layer's forward and backward set and everything else
// (embedding, head, optimizer, transfers) made free.
StepProgram timed_program(PipelineSchedule schedule, std::int32_t stages, std::int32_t micro_batches,
                          std::int32_t chunks, std::int64_t layers, const std::vector<StageTime>& times) {
  TransformerConfig model = *find_model("tiny");
  model.layers = layers;
  TrainingSpec training;
  training.sequence_length = 16;
  training.micro_batches = micro_batches;
  training.log_loss_every_step = false;
  ParallelPlan plan;
  plan.pp = stages;
  plan.schedule = schedule;
  plan.virtual_stages = chunks;
  auto built = build_step_program(model, training, plan);
  if (!built) ADD_FAILURE() << to_text(built.error());
  StepProgram program = std::move(*built);
  program.op_lists.clear();
  program.op_lists.emplace_back();  // free
  for (std::size_t s = 0; s < program.classes.size(); ++s) {
    const auto list = [&](std::int64_t ps) {
      OpList made;
      made.ops.push_back(hand_made::op(ps));
      program.op_lists.push_back(std::move(made));
      return static_cast<std::int32_t>(program.op_lists.size()) - 1;
    };
    const std::int32_t forward = list(times[s].forward), backward = list(times[s].backward);
    for (Instruction& i : program.classes[s].instructions) {
      const bool layer = i.block >= 1 && i.block <= layers;
      if (i.op_list >= 0) i.op_list = 0;
      if (layer && i.kind == InstructionKind::forward) i.op_list = forward;
      if (layer && i.kind == InstructionKind::backward) i.op_list = backward;
      i.payload = Bytes(0);
      i.blocks_host = false;
    }
    for (Dependency& d : program.classes[s].dependencies) d.op = -1;
  }
  return program;
}

SimulationResult simulate(const StepProgram& program) {
  const auto simulator = Simulator::create(program, hand_made::cluster(program.mesh.world()));
  EXPECT_TRUE(simulator.has_value());
  auto result = simulator->run(hand_made::plain_profile(), {.memory = false});
  EXPECT_TRUE(result.has_value()) << to_text(result.error());
  return std::move(*result);
}

void expect_bubble(const SimulationResult& result, std::int64_t idle, std::int64_t busy) {
  EXPECT_EQ(result.step_time.ps(), idle + busy);
  for (const RankBreakdown& b : result.breakdown) {
    EXPECT_EQ(b.compute.ps(), busy);
    EXPECT_EQ(b.bubble.ps(), idle);
  }
}

TEST(Schedules, GPipeBubbleIsPMinus1OverMPlusPMinus1) {
  for (const std::int32_t p : {2, 3, 4, 8}) {
    for (const std::int32_t m : {1, 2, 4, 8, 13}) {
      const std::vector<StageTime> times(static_cast<std::size_t>(p), {1000, 2000});
      expect_bubble(simulate(timed_program(PipelineSchedule::gpipe, p, m, 1, p, times)), (p - 1) * 3000,
                    m * 3000);
    }
  }
}

TEST(Schedules, OneForwardOneBackwardHasTheBubbleOfGPipe) {
  for (const std::int32_t p : {2, 3, 4, 8}) {
    for (const std::int32_t m : {2, 4, 8, 13}) {
      const std::vector<StageTime> times(static_cast<std::size_t>(p), {1000, 2000});
      expect_bubble(simulate(timed_program(PipelineSchedule::one_f_one_b, p, m, 1, p, times)), (p - 1) * 3000,
                    m * 3000);
    }
  }
}

TEST(Schedules, InterleavedBubbleIsPMinus1OverVMPlusPMinus1) {
  for (const std::int32_t p : {2, 4}) {
    for (const std::int32_t v : {2, 3}) {
      for (const std::int32_t rounds : {1, 2, 4}) {
        const std::int32_t m = p * rounds;
        const std::vector<StageTime> times(static_cast<std::size_t>(p), {1000, 2000});
        // A chunk takes 3000 a micro-batch; p - 1 of them is the bubble of v m of work.
        expect_bubble(simulate(timed_program(PipelineSchedule::interleaved, p, m, v, p * v, times)),
                      (p - 1) * 3000, v * m * 3000);
      }
    }
  }
}

TEST(Schedules, SequentialStagesTakeTheSumOfTheirTimes) {
  const std::vector<StageTime> times{{10, 20}, {30, 40}, {50, 60}};
  EXPECT_EQ(simulate(timed_program(PipelineSchedule::sequential, 3, 1, 1, 3, times)).step_time.ps(), 210);
}

// Order of work on a stage as the papers give it: GPipe all forwards, then all backwards in reverse or in
// order; 1F1B p - 1 - s forwards ahead.
using Task = std::pair<bool, std::int32_t>;  // forward, micro-batch
std::vector<Task> order_of(PipelineSchedule schedule, std::int32_t p, std::int32_t s, std::int32_t m) {
  std::vector<Task> order;
  const std::int32_t ahead = schedule == PipelineSchedule::gpipe ? m : std::min(m, p - 1 - s);
  for (std::int32_t i = 0; i < ahead; ++i) order.emplace_back(true, i);
  for (std::int32_t i = ahead; i < m; ++i) {
    order.emplace_back(true, i);
    order.emplace_back(false, i - ahead);
  }
  for (std::int32_t i = m - ahead; i < m; ++i) order.emplace_back(false, i);
  return order;
}

// Each stage does its tasks in order, each as soon as what it needs is there: passes over all stages until
// nothing changes.
std::int64_t list_schedule(PipelineSchedule schedule, std::int32_t p, std::int32_t m,
                           const std::vector<StageTime>& times) {
  std::map<std::tuple<bool, std::int32_t, std::int32_t>, std::int64_t> end;  // forward, stage, micro-batch
  std::int64_t last = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::int32_t s = 0; s < p; ++s) {
      std::int64_t at = 0;
      for (const auto& [forward, b] : order_of(schedule, p, s, m)) {
        const std::int32_t from = forward ? s - 1 : s + 1;
        if (from >= 0 && from < p) {
          const auto needed = end.find({forward, from, b});
          if (needed == end.end()) break;
          at = std::max(at, needed->second);
        }
        const StageTime& time = times[static_cast<std::size_t>(s)];
        at += forward ? time.forward : time.backward;
        const auto [entry, added] = end.try_emplace({forward, s, b}, at);
        changed = changed || added;
        last = std::max(last, at);
      }
    }
  }
  return last;
}

RC_GTEST_PROP(Schedules, MakespanOfRandomStagesEqualsAListScheduler, ()) {
  const auto schedule = *rc::gen::element(PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b);
  const auto p = *rc::gen::inRange(2, 7);
  const auto m = *rc::gen::inRange(1, 10);
  std::vector<StageTime> times;
  for (std::int32_t s = 0; s < p; ++s) {
    times.push_back({*rc::gen::inRange<std::int64_t>(1, 5000), *rc::gen::inRange<std::int64_t>(1, 9000)});
  }
  const auto result = simulate(timed_program(schedule, p, m, 1, p, times));
  RC_ASSERT(result.step_time.ps() == list_schedule(schedule, p, m, times));
}

std::vector<std::int32_t> in_flight(PipelineSchedule schedule, std::int32_t p, std::int32_t m) {
  TransformerConfig model = *find_model("tiny");
  model.layers = p;
  TrainingSpec training;
  training.sequence_length = 16;
  training.micro_batches = m;
  ParallelPlan plan;
  plan.pp = p;
  plan.schedule = schedule;
  const auto program = build_step_program(model, training, plan);
  const auto simulator = Simulator::create(*program, hand_made::cluster(p));
  const auto result = simulator->run(default_profile());
  std::vector<std::int32_t> counts;
  for (const MemoryReport& report : result->memory) counts.push_back(report.micro_batches_in_flight);
  return counts;
}

TEST(Schedules, OneForwardOneBackwardKeepsPMinusStageMicroBatchesInFlight) {
  EXPECT_EQ(in_flight(PipelineSchedule::one_f_one_b, 4, 9), (std::vector<std::int32_t>{4, 3, 2, 1}));
}

TEST(Schedules, GPipeKeepsAllMicroBatchesInFlight) {
  EXPECT_EQ(in_flight(PipelineSchedule::gpipe, 3, 7), (std::vector<std::int32_t>{7, 7, 7}));
}

}  // namespace
}  // namespace foretrain
