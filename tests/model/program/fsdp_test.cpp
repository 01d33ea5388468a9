// FSDP and HSDP: bytes, order, memory of units.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/program/program_fixture.h"

namespace foretrain {
namespace {

ParallelPlan fsdp(int n, FsdpUnit unit, FsdpSharding sharding = FsdpSharding::full_shard) {
  ParallelPlan plan;
  plan.fsdp = n;
  plan.fsdp_options.unit = unit;
  plan.fsdp_options.sharding = sharding;
  return plan;
}

bool shows(const Instruction& i) {
  switch (i.kind) {
    case InstructionKind::forward:
    case InstructionKind::backward:
    case InstructionKind::all_gather_params:
    case InstructionKind::reduce_scatter_grads:
    case InstructionKind::free_params:
      return true;
    default:
      return false;
  }
}

TEST(Fsdp, WholeModelGathersTwiceAndReducesOnce) {
  const StepProgram program = build(small_model(), small_training(), fsdp(4, FsdpUnit::whole_model));
  const RankClass& c = program.classes.front();
  const std::int64_t bytes = 4 * parameter_count(program.model);
  EXPECT_EQ(bytes % 16, 0);  // shards need no padding
  EXPECT_EQ(of_kind(c, InstructionKind::all_gather_params).size(), 2u);
  EXPECT_EQ(payload_of(c, InstructionKind::all_gather_params), 2 * bytes);
  EXPECT_EQ(of_kind(c, InstructionKind::reduce_scatter_grads).size(), 1u);
  EXPECT_EQ(payload_of(c, InstructionKind::reduce_scatter_grads), bytes);
  EXPECT_EQ(labels(c, shows),
            (std::vector<std::string>{"AllGather unit 0.mb0", "F0.mb0", "F1.mb0", "F2.mb0", "F3.mb0",
                                      "F4.mb0", "F5.mb0", "Free unit 0.mb0", "AllGather unit 0.mb0", "B5.mb0",
                                      "B4.mb0", "B3.mb0", "B2.mb0", "B1.mb0", "B0.mb0", "Free unit 0.mb0",
                                      "ReduceScatter unit 0.mb0"}));
  EXPECT_EQ(persistent_bytes(c, MemoryClass::parameters), bytes / 4);
  EXPECT_EQ(persistent_bytes(c, MemoryClass::optimizer), 2 * bytes / 4);
  EXPECT_EQ(persistent_bytes(c, MemoryClass::gradients), 0);
}

TEST(Fsdp, ShardGradOpGathersOnce) {
  for (const FsdpUnit unit : {FsdpUnit::whole_model, FsdpUnit::block}) {
    const StepProgram program =
        build(small_model(), small_training(), fsdp(4, unit, FsdpSharding::shard_grad_op));
    EXPECT_EQ(payload_of(program.classes[0], InstructionKind::all_gather_params),
              4 * parameter_count(program.model));
  }
}

TEST(Fsdp, PerBlockGathersLayersTwiceAndTheRootOnce) {
  const StepProgram program = build(small_model(), small_training(), fsdp(4, FsdpUnit::block));
  const RankClass& c = program.classes.front();
  std::int64_t layers = 0;
  for (std::int64_t b = 1; b <= program.model.layers; ++b) {
    for (const Parameter& p : block_parameters(program.model, b)) layers += p.elements();
  }
  const std::int64_t root = parameter_count(program.model) - layers;
  EXPECT_EQ(payload_of(c, InstructionKind::all_gather_params), 4 * (2 * layers + root));
  EXPECT_EQ(payload_of(c, InstructionKind::reduce_scatter_grads), 4 * (layers + root));
}

TEST(Fsdp, PrefetchIssuesTheNextGatherBeforeTheCompute) {
  ParallelPlan plan = fsdp(2, FsdpUnit::block);
  const StepProgram with = build(small_model(2), small_training(), plan);
  EXPECT_EQ(labels(with.classes[0], shows), (std::vector<std::string>{"AllGather unit 0.mb0",
                                                                      "AllGather unit 1.mb0",
                                                                      "F0.mb0",  //
                                                                      "AllGather unit 2.mb0",
                                                                      "F1.mb0",
                                                                      "Free unit 1.mb0",  //
                                                                      "F2.mb0",
                                                                      "Free unit 2.mb0",
                                                                      "F3.mb0",  //
                                                                      "AllGather unit 2.mb0",
                                                                      "B3.mb0",  //
                                                                      "AllGather unit 1.mb0",
                                                                      "B2.mb0",
                                                                      "Free unit 2.mb0",
                                                                      "ReduceScatter unit 2.mb0",  //
                                                                      "B1.mb0",
                                                                      "Free unit 1.mb0",
                                                                      "ReduceScatter unit 1.mb0",  //
                                                                      "B0.mb0",
                                                                      "Free unit 0.mb0",
                                                                      "ReduceScatter unit 0.mb0"}));
  plan.fsdp_options.prefetch_forward = plan.fsdp_options.prefetch_backward = false;
  const StepProgram without = build(small_model(2), small_training(), plan);
  EXPECT_EQ(labels(without.classes[0], shows), (std::vector<std::string>{"AllGather unit 0.mb0",
                                                                         "F0.mb0",  //
                                                                         "AllGather unit 1.mb0",
                                                                         "F1.mb0",
                                                                         "Free unit 1.mb0",  //
                                                                         "AllGather unit 2.mb0",
                                                                         "F2.mb0",
                                                                         "Free unit 2.mb0",
                                                                         "F3.mb0",
                                                                         "B3.mb0",  //
                                                                         "AllGather unit 2.mb0",
                                                                         "B2.mb0",
                                                                         "Free unit 2.mb0",
                                                                         "ReduceScatter unit 2.mb0",  //
                                                                         "AllGather unit 1.mb0",
                                                                         "B1.mb0",
                                                                         "Free unit 1.mb0",
                                                                         "ReduceScatter unit 1.mb0",  //
                                                                         "B0.mb0",
                                                                         "Free unit 0.mb0",
                                                                         "ReduceScatter unit 0.mb0"}));
}

// Most units other than the root that are gathered or being gathered, if gathers start as early as their
// dependencies let them.
int most_gathered(const RankClass& c) {
  int peak = 0;
  for (std::size_t i = 0; i < c.instructions.size(); ++i) {
    // At the time instruction i starts, which gathers may have started and which frees not have happened?
    if (c.instructions[i].kind != InstructionKind::free_params) continue;
    int gathered = 0;
    for (std::size_t g = 0; g < c.instructions.size(); ++g) {
      const Instruction& gather = c.instructions[g];
      if (gather.kind != InstructionKind::all_gather_params || gather.unit == 0) continue;
      bool started = true;
      for (const Dependency& d : c.dependencies_of(gather)) {
        if (d.instruction.value >= static_cast<std::int32_t>(i)) started = false;
      }
      bool freed = false;
      for (std::size_t f = g; f < i; ++f) {
        freed = freed || (c.instructions[f].kind == InstructionKind::free_params &&
                          c.instructions[f].unit == gather.unit);
      }
      if (started && !freed) ++gathered;
    }
    peak = std::max(peak, gathered);
  }
  return peak;
}

TEST(Fsdp, AtMostTwoUnitsAreGatheredAtATime) {
  for (const bool prefetch : {true, false}) {
    ParallelPlan plan = fsdp(2, FsdpUnit::block);
    plan.fsdp_options.prefetch_forward = plan.fsdp_options.prefetch_backward = prefetch;
    const StepProgram program = build(small_model(8), small_training(), plan);
    EXPECT_EQ(most_gathered(program.classes[0]), 2);
  }
}

TEST(Fsdp, HybridShardingReducesOverFsdpThenOverDp) {
  ParallelPlan plan = fsdp(4, FsdpUnit::whole_model);
  plan.dp = 2;
  const StepProgram program = build(small_model(), small_training(), plan);
  const RankClass& c = program.classes.front();
  const std::int64_t bytes = 4 * parameter_count(program.model);
  EXPECT_EQ(payload_of(c, InstructionKind::reduce_scatter_grads), bytes);
  EXPECT_EQ(payload_of(c, InstructionKind::all_reduce_grads), bytes / 4);
  EXPECT_EQ(of_kind(c, InstructionKind::reduce_scatter_grads)[0].group, mesh_dims(MeshDim::fsdp));
  EXPECT_EQ(of_kind(c, InstructionKind::all_reduce_grads)[0].group, mesh_dims(MeshDim::dp));
}

TEST(Fsdp, PayloadTypesHalveTheBytes) {
  ParallelPlan plan = fsdp(4, FsdpUnit::whole_model);
  plan.fsdp_options.parameter_payload = plan.fsdp_options.gradient_payload = DType::bf16;
  const StepProgram program = build(small_model(), small_training(), plan);
  const RankClass& c = program.classes.front();
  EXPECT_EQ(payload_of(c, InstructionKind::all_gather_params), 2 * 2 * parameter_count(program.model));
  EXPECT_EQ(payload_of(c, InstructionKind::reduce_scatter_grads), 2 * parameter_count(program.model));
  EXPECT_EQ(of_kind(c, InstructionKind::all_gather_params)[0].dtype, DType::bf16);
}

TEST(Fsdp, ShardsThatDoNotDivideArePadded) {
  TransformerConfig model = small_model();
  model.vocab = 1001;
  model.hidden = 24;
  model.head_dim = 3;
  model.ffn_hidden = 7;
  const StepProgram program = build(model, small_training(), fsdp(5, FsdpUnit::whole_model));
  const std::int64_t shard = (parameter_count(model) + 4) / 5;
  ASSERT_NE(parameter_count(model) % 5, 0);
  EXPECT_EQ(payload_of(program.classes[0], InstructionKind::reduce_scatter_grads), 5 * 4 * shard);
  EXPECT_EQ(persistent_bytes(program.classes[0], MemoryClass::parameters), 4 * shard);
}

TEST(Fsdp, EveryMicroBatchGathersAndReduces) {
  const StepProgram program = build(small_model(), small_training(3), fsdp(4, FsdpUnit::whole_model));
  const std::int64_t bytes = 4 * parameter_count(program.model);
  EXPECT_EQ(payload_of(program.classes[0], InstructionKind::all_gather_params), 3 * 2 * bytes);
  EXPECT_EQ(payload_of(program.classes[0], InstructionKind::reduce_scatter_grads), 3 * bytes);
}

}  // namespace
}  // namespace foretrain
