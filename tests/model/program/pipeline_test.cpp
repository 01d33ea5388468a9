// Pipelines and tensor parallelism: transfers, tied embeddings, replicated gradients, the step's end.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/program/program_fixture.h"

namespace foretrain {
namespace {

ParallelPlan pipeline(int pp, PipelineSchedule schedule, int chunks = 1) {
  ParallelPlan plan;
  plan.pp = pp;
  plan.schedule = schedule;
  plan.virtual_stages = chunks;
  return plan;
}

std::vector<Instruction> transfers(const RankClass& c, InstructionKind kind) {
  std::vector<Instruction> found = of_kind(c, kind);
  std::erase_if(found, [](const Instruction& i) { return i.micro_batch < 0; });  // the tied embedding
  return found;
}

TEST(Pipeline, EveryBoundaryIsCrossedTwicePerMicroBatch) {
  constexpr int kStages = 4, kMicroBatches = 8;
  for (const PipelineSchedule schedule : {PipelineSchedule::sequential, PipelineSchedule::gpipe,
                                          PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved}) {
    const int chunks = schedule == PipelineSchedule::interleaved ? 2 : 1;
    const StepProgram program =
        build(small_model(8), small_training(kMicroBatches), pipeline(kStages, schedule, chunks));
    std::size_t sends = 0;
    for (const RankClass& c : program.classes) {
      sends += transfers(c, InstructionKind::send).size();
      for (const Instruction& i : transfers(c, InstructionKind::send)) {
        EXPECT_EQ(i.payload, Bytes(2 * 32 * 64 * 4));  // micro-batch x sequence x hidden x fp32
        EXPECT_EQ(i.stream, StreamKind::pipeline_send);
      }
    }
    EXPECT_EQ(sends, 2u * (kStages * static_cast<std::size_t>(chunks) - 1) * kMicroBatches);
  }
}

TEST(Pipeline, SequenceParallelSendsItsPartOfTheSequence) {
  ParallelPlan plan = pipeline(2, PipelineSchedule::one_f_one_b);
  plan.tp = 4;
  plan.sequence_parallel = true;
  const StepProgram program = build(small_model(), small_training(2), plan);
  EXPECT_EQ(transfers(program.classes[0], InstructionKind::send)[0].payload, Bytes(2 * 32 * 64 * 4 / 4));
  plan.sequence_parallel = false;
  const StepProgram whole = build(small_model(), small_training(2), plan);
  EXPECT_EQ(transfers(whole.classes[0], InstructionKind::send)[0].payload, Bytes(2 * 32 * 64 * 4));
}

TEST(Pipeline, AReceiveIsPostedAtMostOneTaskAhead) {
  const StepProgram program =
      build(small_model(4), small_training(8), pipeline(4, PipelineSchedule::one_f_one_b));
  const RankClass& c = program.classes[1];
  // Of every receive: how many tasks (one layer each here) lie between its dependency and its consumer.
  for (std::size_t r = 0; r < c.instructions.size(); ++r) {
    if (c.instructions[r].kind != InstructionKind::recv) continue;
    std::int32_t posted = -1, used = -1;
    for (const Dependency& d : c.dependencies_of(c.instructions[r])) posted = d.instruction.value;
    for (std::size_t i = 0; i < c.instructions.size(); ++i) {
      for (const Dependency& d : c.dependencies_of(c.instructions[i])) {
        if (d.instruction.value == static_cast<std::int32_t>(r)) used = static_cast<std::int32_t>(i);
      }
    }
    ASSERT_GE(used, 0);
    int tasks = 0;
    for (std::int32_t i = posted + 1; i < used; ++i) {
      const InstructionKind kind = c.instructions[static_cast<std::size_t>(i)].kind;
      tasks += kind == InstructionKind::forward || kind == InstructionKind::backward ? 1 : 0;
    }
    EXPECT_LE(tasks, 1);
  }
}

TEST(Pipeline, TiedEmbeddingGradientsAreExchangedBetweenFirstAndLastStage) {
  TransformerConfig model = small_model();
  const std::int64_t embedding = model.vocab * model.hidden * 4;
  const auto exchanged = [&](const ParallelPlan& plan, std::size_t stage) {
    const StepProgram program = build(model, small_training(4), plan);
    std::int64_t bytes = 0;
    for (const Instruction& i : of_kind(program.classes[stage], InstructionKind::send)) {
      if (i.micro_batch < 0) bytes += i.payload.count();
    }
    return bytes;
  };
  ParallelPlan plan = pipeline(4, PipelineSchedule::one_f_one_b);
  EXPECT_EQ(exchanged(plan, 0), embedding);
  EXPECT_EQ(exchanged(plan, 1), 0);
  EXPECT_EQ(exchanged(plan, 3), embedding);
  plan.tp = 2;
  EXPECT_EQ(exchanged(plan, 0), embedding / 2);
  plan.fsdp = 4;
  EXPECT_EQ(exchanged(plan, 3), embedding / 8);
  plan.fsdp = 1;
  plan.dp = 4;
  EXPECT_EQ(exchanged(plan, 3), embedding / 2);
  plan.zero_stage = 1;
  EXPECT_EQ(exchanged(plan, 3), embedding / 8);
  model.tied_head = false;
  EXPECT_EQ(exchanged(plan, 3), 0);
}

TEST(Pipeline, StagesHoldTheirPartsAndATiedHeadIsHeldTwice) {
  for (const bool tied : {true, false}) {
    TransformerConfig model = small_model();
    model.tied_head = tied;
    const StepProgram program = build(model, small_training(4), pipeline(4, PipelineSchedule::gpipe));
    std::int64_t sum = 0;
    for (const RankClass& c : program.classes) {
      sum += c.parameters;
      EXPECT_EQ(persistent_bytes(c, MemoryClass::parameters), 4 * c.parameters);
    }
    EXPECT_EQ(sum, parameter_count(model) + (tied ? model.vocab * model.hidden : 0));
  }
}

TEST(Pipeline, ForwardOnlyRanksOwnNoGradientsOrOptimizerStateAndTheProgramSaysSo) {
  ParallelPlan plan = pipeline(2, PipelineSchedule::sequential);
  plan.pp_forward_only_ranks = true;
  const StepProgram program = build(small_model(), small_training(), plan);
  ASSERT_EQ(program.warnings.size(), 1u);
  EXPECT_NE(program.warnings[0].find("NOT a correct training step"), std::string::npos);
  const RankClass& first = program.classes[0];
  EXPECT_TRUE(of_kind(first, InstructionKind::backward).empty());
  EXPECT_TRUE(of_kind(first, InstructionKind::optimizer_step).empty());
  EXPECT_TRUE(of_kind(first, InstructionKind::recv).empty());
  EXPECT_EQ(persistent_bytes(first, MemoryClass::optimizer), 0);
  // The reference builds the whole model on every rank.
  for (const RankClass& c : program.classes) {
    EXPECT_EQ(persistent_bytes(c, MemoryClass::parameters), 4 * parameter_count(program.model));
  }
  EXPECT_FALSE(of_kind(program.classes[1], InstructionKind::backward).empty());
  plan.pp_forward_only_ranks = false;
  EXPECT_TRUE(build(small_model(), small_training(), plan).warnings.empty());
}

TEST(TensorParallel, SequenceParallelReducesNormsAndRowBiasesOverTp) {
  ParallelPlan plan;
  plan.tp = 4;
  const auto reduced = [&] {
    const StepProgram program = build(small_model(3), small_training(), plan);
    return payload_of(program.classes[0], InstructionKind::all_reduce_grads);
  };
  EXPECT_EQ(reduced(), 0);
  plan.sequence_parallel = true;
  // Per layer two LayerNorms (weight and bias) and the biases of proj and fc2; the head's LayerNorm.
  EXPECT_EQ(reduced(), 4 * 64 * (3 * (4 + 2) + 2));
  plan.sequence_parallel = false;
  plan.tp_kind = TensorParallelKind::column_gather;
  EXPECT_EQ(reduced(), 0);
}

TEST(TensorParallel, RanksHoldTheirShareOfTheParameters) {
  ParallelPlan plan;
  plan.tp = 4;
  const TransformerConfig model = small_model(2);
  const std::int64_t h = 64, f = 256;
  const std::int64_t replicated = 2 * (4 * h + 2 * h) + 2 * h + 128 * h;  // norms, row biases, positions
  const std::int64_t split = 2 * (3 * h * h + 3 * h + h * h + 2 * h * f + f) + 1000 * h;
  ASSERT_EQ(replicated + split, parameter_count(model));
  EXPECT_EQ(build(model, small_training(), plan).classes[0].parameters, replicated + split / 4);
}

std::vector<std::string> end_of_step(const StepProgram& program, std::size_t stage) {
  return labels(program.classes[stage], [](const Instruction& i) {
    return i.block < 0 && i.kind != InstructionKind::host_to_device && i.kind != InstructionKind::zero_grad;
  });
}

TEST(StepEnd, AmpUnscalesAgreesOnInfinitiesAndClippingSumsTheNorm) {
  TrainingSpec training = small_training(2);
  training.precision = Precision::fp16_amp;
  training.clip_gradients = true;
  ParallelPlan plan;
  EXPECT_EQ(end_of_step(build(small_model(), training, plan), 0),
            (std::vector<std::string>{"Unscale", "GradNorm", "Clip", "OptimizerStep", "Loss"}));
  plan.tp = 2;
  plan.pp = 2;
  const StepProgram program = build(small_model(), training, plan);
  EXPECT_EQ(end_of_step(program, 1),
            (std::vector<std::string>{"Unscale", "AllReduce flag", "GradNorm", "AllReduce flag", "Clip",
                                      "OptimizerStep", "Loss"}));
  for (const Instruction& i : of_kind(program.classes[0], InstructionKind::all_reduce_flag)) {
    EXPECT_EQ(i.group, mesh_dims(MeshDim::pp, MeshDim::tp));
    EXPECT_EQ(i.payload, Bytes(4));
  }
}

TEST(StepEnd, TheHostWaitsForTheFoundInfFlagUnlessTheOptimizerIsFused) {
  TrainingSpec training = small_training();
  training.precision = Precision::fp16_amp;
  training.log_loss_every_step = false;
  const auto waits = [&](const ParallelPlan& plan) {
    const StepProgram program = build(small_model(), training, plan);
    std::vector<std::string> names =
        labels(program.classes[0], [](const Instruction& i) { return i.blocks_host; });
    return names;
  };
  ParallelPlan sharded;
  sharded.fsdp = 2;
  EXPECT_EQ(waits({}), (std::vector<std::string>{"Unscale"}));
  EXPECT_EQ(waits(sharded), (std::vector<std::string>{"AllReduce flag"}));
  training.optimizer = Optimizer::adamw_fused;
  EXPECT_TRUE(waits({}).empty());
  training.log_loss_every_step = true;
  EXPECT_EQ(waits({}), (std::vector<std::string>{"Loss"}));
}

TEST(StepEnd, DataParallelReplicasNeedNotAgree) {
  TrainingSpec training = small_training();
  training.precision = Precision::fp16_amp;
  training.clip_gradients = true;
  ParallelPlan plan;
  plan.dp = 4;
  EXPECT_TRUE(
      of_kind(build(small_model(), training, plan).classes[0], InstructionKind::all_reduce_flag).empty());
  plan.zero_stage = 1;
  EXPECT_EQ(of_kind(build(small_model(), training, plan).classes[0], InstructionKind::all_reduce_flag).size(),
            2u);
}

TEST(StepEnd, TheOptimizerWaitsForTheLastReduction) {
  for (const bool sharded : {false, true}) {
    ParallelPlan plan;
    (sharded ? plan.fsdp : plan.dp) = 4;
    const StepProgram program = build(small_model(), small_training(), plan);
    const RankClass& c = program.classes[0];
    std::int32_t last = -1, waits_for = -1;
    for (std::size_t i = 0; i < c.instructions.size(); ++i) {
      if (c.instructions[i].stream == StreamKind::data_parallel) last = static_cast<std::int32_t>(i);
      if (c.instructions[i].kind != InstructionKind::optimizer_step) continue;
      for (const Dependency& d : c.dependencies_of(c.instructions[i])) waits_for = d.instruction.value;
    }
    EXPECT_EQ(waits_for, last);
  }
}

TEST(Recompute, RunsBeforeEveryLayersBackward) {
  TrainingSpec training = small_training();
  training.recompute = Recompute::full;
  const StepProgram program = build(small_model(2), training, {});
  EXPECT_EQ(labels(program.classes[0],
                   [](const Instruction& i) {
                     return i.kind == InstructionKind::recompute || i.kind == InstructionKind::backward;
                   }),
            (std::vector<std::string>{"B3.mb0", "R2.mb0", "B2.mb0", "R1.mb0", "B1.mb0", "B0.mb0"}));
}

TEST(Sharing, EqualLayersShareTheirOpLists) {
  TrainingSpec training = small_training(64);
  const StepProgram shallow = build(small_model(8), training, pipeline(8, PipelineSchedule::one_f_one_b));
  const StepProgram deep = build(small_model(96), training, pipeline(8, PipelineSchedule::one_f_one_b));
  EXPECT_EQ(shallow.op_lists.size(), deep.op_lists.size());
  EXPECT_EQ(deep.tensor_tables.size(), 3u);
}

TEST(Build, AnInvalidModelIsAnErrorWithItsPath) {
  TransformerConfig model = small_model();
  model.layers = 0;
  const auto program = build_step_program(model, small_training(), {});
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().front().where.path, "model.layers");
}

}  // namespace
}  // namespace foretrain
