// Invariants that hold for every plan, on programs as the builder makes them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "sim/engine/simulate.h"
#include "tests/sim/engine/hand_made.h"

namespace foretrain {
namespace {

struct Case {
  TrainingSpec training;
  ParallelPlan plan;
};

Case any_case() {
  Case c;
  c.training.sequence_length = 32;
  c.training.micro_batch_size = 2;
  c.training.precision = *rc::gen::element(Precision::fp32, Precision::fp16_amp, Precision::bf16);
  c.training.clip_gradients = *rc::gen::arbitrary<bool>();
  c.training.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  c.plan.pp = *rc::gen::element(1, 2);
  c.plan.tp = *rc::gen::element(1, 2);
  c.plan.tp_kind = *rc::gen::element(TensorParallelKind::column_gather, TensorParallelKind::megatron);
  if (*rc::gen::arbitrary<bool>()) {
    c.plan.dp = *rc::gen::element(1, 2);
  } else {
    c.plan.fsdp = *rc::gen::element(1, 2);
  }
  c.plan.fsdp_options.unit = *rc::gen::element(FsdpUnit::whole_model, FsdpUnit::block);
  c.plan.zero_stage = c.plan.dp > 1 ? *rc::gen::element(0, 1, 2) : 0;
  c.plan.ddp.overlap = *rc::gen::arbitrary<bool>();
  c.plan.schedule = c.plan.pp == 1
                        ? PipelineSchedule::one_f_one_b
                        : *rc::gen::element(PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b);
  c.training.micro_batches = *rc::gen::inRange(1, 5);
  return c;
}

Expected<StepProgram> build_program(const Case& c) {
  return build_step_program(*find_model("tiny"), c.training, c.plan);
}

RC_GTEST_PROP(Plans, EveryPicosecondIsAccountedForAndEveryRecordAgrees, ()) {
  const Case c = any_case();
  const auto program = build_program(c);
  RC_PRE(program.has_value());
  const auto simulator = Simulator::create(*program, hand_made::cluster(8));
  RC_ASSERT(simulator.has_value());
  Profile profile = default_profile();
  profile.at(ParameterId::communication_interference).value = *rc::gen::element(0.0, 0.3, 1.0);
  SimulationOptions options;
  options.timeline = options.ops = options.host_track = options.graph = true;
  const auto result = simulator->run(profile, options);
  if (!result) RC_FAIL(to_text(result.error()));
  RC_ASSERT(result->step_time > Time{});
  RC_ASSERT(result->step_time >= result->collective_lower_bound);
  for (const RankBreakdown& b : result->breakdown) {
    RC_ASSERT(b.total() == result->step_time);
    for (const Time part :
         {b.compute, b.exposed_communication, b.bubble, b.host, b.overlapped_communication}) {
      RC_ASSERT(part >= Time{});
    }
  }

  // Every instruction has one span, in the step; spans of a stream follow one another; ops lie inside.
  std::map<std::pair<std::int32_t, std::int32_t>, const Span*> of_instruction;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> last_end;
  for (const Span& s : result->timeline.spans) {
    RC_ASSERT(s.start_ps >= 0);
    RC_ASSERT(s.end_ps >= s.start_ps);
    if (s.stream == kHostTrack) continue;
    RC_ASSERT(s.end_ps <= result->step_time.ps());
    if (s.op >= 0) continue;
    RC_ASSERT(of_instruction.emplace(std::pair(s.rank, s.instruction), &s).second);
    std::int64_t& last = last_end[{s.rank, s.stream}];
    RC_ASSERT(s.start_ps >= last);
    last = s.end_ps;
  }
  std::size_t instructions = 0;
  for (const RankClass& rank_class : program->classes) instructions += rank_class.instructions.size();
  RC_ASSERT(of_instruction.size() == instructions);
  for (const Span& s : result->timeline.spans) {
    if (s.op < 0) continue;
    const Span& whole = *of_instruction.at({s.rank, s.instruction});
    RC_ASSERT(s.start_ps >= whole.start_ps);
    RC_ASSERT(s.end_ps <= whole.end_ps);
  }

  // The graph's edges held, and every node but the first is explained by one of them.
  const StepGraph& graph = result->graph;
  std::vector<bool> explained(graph.nodes.size(), false);
  for (const StepGraph::Edge& e : graph.edges) {
    RC_ASSERT(e.from < e.to);
    const std::int64_t apart = graph.nodes[static_cast<std::size_t>(e.to)].time_ps -
                               graph.nodes[static_cast<std::size_t>(e.from)].time_ps;
    RC_ASSERT(e.duration_ps <= apart);
    if (e.duration_ps == apart) explained[static_cast<std::size_t>(e.to)] = true;
  }
  for (std::size_t n = 1; n < graph.nodes.size(); ++n) RC_ASSERT(explained[n]);

  // Memory: the parts add up to the peak, and nothing is reserved that is not at least allocated.
  RC_ASSERT(result->memory.size() == program->classes.size());
  for (const MemoryReport& m : result->memory) {
    Bytes sum;
    for (std::size_t k = 0; k < m.at_peak.size(); ++k) {
      sum += m.at_peak[k];
      RC_ASSERT(m.at_peak[k] >= Bytes(0));
      RC_ASSERT(m.peak_of_class[k] >= m.at_peak[k]);
    }
    RC_ASSERT(sum == m.peak_allocated);
    RC_ASSERT(m.peak_reserved >= m.peak_allocated);
  }

  // And none of the records changed what happened.
  const auto bare = simulator->run(profile, {.memory = false});
  RC_ASSERT(bare->event_hash == result->event_hash);
  RC_ASSERT(bare->step_time == result->step_time);
}

RC_GTEST_PROP(Plans, ReplicasDoNotChangeTheTimeOfAStepWithoutCommunication, ()) {
  Case c = any_case();
  c.plan = ParallelPlan{};
  const auto one = build_program(c);
  RC_PRE(one.has_value());
  const auto cluster = hand_made::cluster(8);
  const Profile profile = hand_made::plain_profile();
  const auto alone = Simulator::create(*one, cluster)->run(profile);
  RC_ASSERT(alone->breakdown[0].exposed_communication == Time{} ||
            alone->breakdown[0].exposed_communication < Time::from_us(50));  // copies of tokens
  RC_ASSERT(alone->breakdown[0].bubble == Time{});
}

TEST(Plans, TimelineOfAllRanksIsThatOfTheirClass) {
  Case c;
  c.training.sequence_length = 32;
  c.training.micro_batches = 2;
  c.plan.pp = 2;
  c.plan.dp = 2;
  const auto program = build_program(c);
  ASSERT_TRUE(program.has_value()) << to_text(program.error());
  const auto simulator = Simulator::create(*program, hand_made::cluster(4));
  SimulationOptions options;
  options.timeline = true;
  const auto classes = simulator->run(default_profile(), options);
  options.all_ranks = true;
  const auto all = simulator->run(default_profile(), options);
  EXPECT_EQ(all->timeline.spans.size(), 2 * classes->timeline.spans.size());
  std::map<std::int32_t, std::size_t> per_rank;
  for (const Span& s : all->timeline.spans) ++per_rank[s.rank];
  EXPECT_EQ(per_rank.size(), 4u);
  EXPECT_EQ(per_rank[0], per_rank[1]);
  EXPECT_EQ(per_rank[2], per_rank[3]);
  EXPECT_EQ(all->timeline.ranks, 4);
  EXPECT_FALSE(all->timeline.samples.empty());
}

TEST(Plans, FasterHardwareIsNeverSlowerOnOneGpu) {
  Case c;
  c.training.sequence_length = 128;
  const auto program = build_program(c);
  const auto simulator = Simulator::create(*program, hand_made::cluster(1));
  const Profile base = default_profile();
  const Time before = simulator->run(base)->step_time;
  for (const auto& [id, factor] :
       {std::pair(ParameterId::matmul_efficiency_fp32, 1.3), std::pair(ParameterId::memory_efficiency, 1.3),
        std::pair(ParameterId::kernel_overhead_us, 0.5), std::pair(ParameterId::host_time_per_op_us, 0.5)}) {
    Profile better = base;
    better.at(id).value *= factor;
    EXPECT_LE(simulator->run(better)->step_time, before);
  }
}

TEST(Plans, ChunkFidelityAgreesWithTheFluidOneWhereLinksAreUniform) {
  Case c;
  c.training.sequence_length = 256;
  ClusterSpec spec = *find_cluster("8xa100_80_sxm");
  const Cluster cluster = build(spec);
  for (const int kind : {0, 1, 2, 3}) {
    c.plan = ParallelPlan{};
    if (kind == 0) c.plan.dp = 8;
    if (kind == 1) c.plan.fsdp = 8;
    if (kind == 2) c.plan.tp = 2;
    if (kind == 3) c.plan.pp = 2;
    const auto program = build_step_program(*find_model("gpt_125m_reference"), c.training, c.plan);
    ASSERT_TRUE(program.has_value()) << to_text(program.error());
    const auto simulator = Simulator::create(*program, cluster);
    const auto fluid = simulator->run(default_profile());
    SimulationOptions options;
    options.fidelity = Fidelity::chunk;
    const auto chunk = simulator->run(default_profile(), options);
    ASSERT_TRUE(chunk.has_value());
    EXPECT_NEAR(chunk->step_time / fluid->step_time, 1.0, 0.1) << kind;
    EXPECT_GE(chunk->step_time, chunk->collective_lower_bound);
    EXPECT_EQ(chunk->event_hash, simulator->run(default_profile(), options)->event_hash);
  }
}

}  // namespace
}  // namespace foretrain
