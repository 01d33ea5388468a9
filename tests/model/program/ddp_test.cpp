// DDP and ZeRO: bucket boundaries, bytes, dependencies.
#include <gtest/gtest.h>

#include <numeric>

#include "model/program/strategies/gradient_buckets.h"
#include "tests/model/program/program_fixture.h"

namespace foretrain {
namespace {

using Buckets = std::vector<std::vector<std::size_t>>;

Bytes mib(double n) { return Bytes(static_cast<std::int64_t>(n * 1048576)); }

TEST(GradientBuckets, ABucketIsClosedByTheGradientThatReachesItsLimit) {
  // As torch.distributed._compute_bucket_assignment_by_size answers for these sizes and limits [1, 25] MiB.
  const std::vector<Bytes> sizes{mib(0.5), mib(0.25), mib(4), mib(20), mib(4),
                                 mib(2),   mib(30),   mib(1), mib(1)};
  EXPECT_EQ(assign_buckets(sizes, mib(1), mib(25)), (Buckets{{0, 1, 2}, {3, 4, 5}, {6}, {7, 8}}));
}

TEST(GradientBuckets, ExactlyTheLimitClosesABucket) {
  EXPECT_EQ(assign_buckets(std::vector{mib(1), mib(25), mib(24), mib(1)}, mib(1), mib(25)),
            (Buckets{{0}, {1}, {2, 3}}));
}

TEST(GradientBuckets, OneHugeGradientIsABucketAndNoneGiveNone) {
  EXPECT_EQ(assign_buckets(std::vector{mib(500)}, mib(1), mib(25)), (Buckets{{0}}));
  EXPECT_TRUE(assign_buckets({}, mib(1), mib(25)).empty());
}

ParallelPlan ddp(int dp) {
  ParallelPlan plan;
  plan.dp = dp;
  plan.ddp.first_bucket = Bytes(64 * 1024);
  plan.ddp.bucket = Bytes(256 * 1024);
  return plan;
}

TEST(Ddp, ReducesEveryGradientByteOnce) {
  for (const bool tied : {true, false}) {
    TransformerConfig model = small_model();
    model.tied_head = tied;
    const StepProgram program = build(model, small_training(), ddp(4));
    const RankClass& c = program.classes.front();
    EXPECT_EQ(payload_of(c, InstructionKind::all_reduce_grads), 4 * parameter_count(model));
    EXPECT_EQ(c.parameters, parameter_count(model));
    for (const Instruction& i : of_kind(c, InstructionKind::all_reduce_grads)) {
      EXPECT_EQ(i.group, mesh_dims(MeshDim::dp));
      EXPECT_EQ(i.stream, StreamKind::data_parallel);
    }
  }
}

TEST(Ddp, TheReferenceModelReducesFiveHundredMegabytes) {
  const TransformerConfig* model = find_model("gpt_125m_reference");
  ASSERT_NE(model, nullptr);
  TrainingSpec training;
  training.micro_batch_size = 4;
  for (const Precision precision : {Precision::fp32, Precision::fp16_amp}) {
    training.precision = precision;
    ParallelPlan plan;
    plan.dp = 2;
    const StepProgram program = build(*model, training, plan);
    EXPECT_NEAR(static_cast<double>(payload_of(program.classes.front(), InstructionKind::all_reduce_grads)),
                500.9e6, 0.05e6);
    // 12 layers of 28.35 MB, head norm and embeddings: the first bucket closes at 1 MiB, the others at 25
    // MiB.
    const auto buckets = of_kind(program.classes.front(), InstructionKind::all_reduce_grads);
    EXPECT_GE(buckets.front().payload, mib(1));
    for (std::size_t b = 1; b + 1 < buckets.size(); ++b) EXPECT_GE(buckets[b].payload, mib(25));
    // The tied embedding (154 MB) becomes ready last.
    EXPECT_GE(buckets.back().payload, Bytes(std::int64_t{50257} * 768 * 4));
  }
}

TEST(Ddp, ABucketWaitsForTheOpThatCompletesItsLastGradient) {
  const StepProgram program = build(small_model(), small_training(), ddp(2));
  const RankClass& c = program.classes.front();
  int inside = 0;
  for (const Instruction& i : of_kind(c, InstructionKind::all_reduce_grads)) {
    const auto dependencies = c.dependencies_of(i);
    ASSERT_EQ(dependencies.size(), 1u);
    const Instruction& backward = c.instructions[static_cast<std::size_t>(dependencies[0].instruction.value)];
    ASSERT_EQ(backward.kind, InstructionKind::backward);
    const OpList& list = program.op_lists[static_cast<std::size_t>(backward.op_list)];
    ASSERT_GE(dependencies[0].op, 0);
    EXPECT_EQ(list.ops[static_cast<std::size_t>(dependencies[0].op)].name, "gradient.copy_to_bucket");
    if (dependencies[0].op + 1 < static_cast<std::int32_t>(list.ops.size())) ++inside;
  }
  EXPECT_GT(inside, 0);  // some start inside a backward, not at its end
}

TEST(Ddp, WithoutOverlapEveryBucketWaitsForTheWholeBackward) {
  ParallelPlan plan = ddp(2);
  plan.ddp.overlap = false;
  const StepProgram program = build(small_model(), small_training(), plan);
  const RankClass& c = program.classes.front();
  for (const Instruction& i : of_kind(c, InstructionKind::all_reduce_grads)) {
    const auto dependencies = c.dependencies_of(i);
    ASSERT_EQ(dependencies.size(), 1u);
    EXPECT_EQ(label_of(c.instructions[static_cast<std::size_t>(dependencies[0].instruction.value)]),
              "B0.mb0");
    EXPECT_EQ(dependencies[0].op, -1);
  }
  EXPECT_EQ(payload_of(c, InstructionKind::all_reduce_grads), 4 * parameter_count(program.model));
}

TEST(Ddp, OnlyTheLastMicroBatchSynchronises) {
  const StepProgram program = build(small_model(), small_training(5), ddp(2));
  const RankClass& c = program.classes.front();
  EXPECT_EQ(payload_of(c, InstructionKind::all_reduce_grads), 4 * parameter_count(program.model));
  for (const Instruction& i : of_kind(c, InstructionKind::all_reduce_grads)) {
    const Dependency d = c.dependencies_of(i)[0];
    EXPECT_EQ(c.instructions[static_cast<std::size_t>(d.instruction.value)].micro_batch, 4);
  }
  EXPECT_EQ(c.gradients, GradientAllocation::on_completion);
}

// Sum of (read, written) of ops with this name that instructions of the class run.
std::int64_t written_by(const StepProgram& program, const std::string& name) {
  std::int64_t sum = 0;
  for (const Instruction& i : program.classes.front().instructions) {
    if (i.op_list < 0) continue;
    for (const Op& op : program.op_lists[static_cast<std::size_t>(i.op_list)].ops) {
      if (op.name == name) sum += op.written.count();
    }
  }
  return sum;
}

TEST(Ddp, CopiesIntoBucketsAlwaysAndOutOfThemOnlyWithoutViews) {
  ParallelPlan plan = ddp(2);
  const std::int64_t gradient = 4 * parameter_count(small_model());
  const StepProgram views = build(small_model(), small_training(), plan);
  EXPECT_EQ(written_by(views, "gradient.copy_to_bucket"), gradient);
  EXPECT_EQ(written_by(views, "gradient.copy_from_bucket"), 0);
  plan.ddp.gradient_as_bucket_view = false;
  const StepProgram copies = build(small_model(), small_training(3), plan);
  EXPECT_EQ(written_by(copies, "gradient.copy_to_bucket"), gradient);
  EXPECT_EQ(written_by(copies, "gradient.copy_from_bucket"), gradient);
  EXPECT_EQ(written_by(copies, "gradient.accumulate"), 2 * gradient);
}

TEST(Ddp, BroadcastsMaskBuffersOnceAStepUnlessToldNotTo) {
  TransformerConfig model = small_model(4);
  ParallelPlan plan = ddp(2);
  const auto broadcast = [&] {
    return payload_of(build(model, small_training(3), plan).classes[0], InstructionKind::broadcast_buffers);
  };
  EXPECT_EQ(broadcast(), 0);  // a model without buffers
  model.causal_mask_buffers = true;
  EXPECT_EQ(broadcast(), 4 * 128 * 128 * 4);  // layers x positions^2 x fp32
  plan.ddp.broadcast_buffers = false;
  EXPECT_EQ(broadcast(), 0);
}

TEST(Zero, ReduceScattersGradientsAndGathersParametersOnce) {
  for (const int stage : {1, 2}) {
    ParallelPlan plan = ddp(4);
    plan.zero_stage = stage;
    const StepProgram program = build(small_model(), small_training(), plan);
    const RankClass& c = program.classes.front();
    const std::int64_t bytes = 4 * parameter_count(program.model);
    EXPECT_EQ(payload_of(c, InstructionKind::reduce_scatter_grads), bytes);
    EXPECT_EQ(payload_of(c, InstructionKind::all_gather_params), bytes);
    EXPECT_TRUE(of_kind(c, InstructionKind::all_reduce_grads).empty());
    EXPECT_EQ(persistent_bytes(c, MemoryClass::parameters), bytes);
    EXPECT_EQ(persistent_bytes(c, MemoryClass::optimizer), 2 * bytes / 4);
    EXPECT_EQ(persistent_bytes(c, MemoryClass::gradients), stage == 1 ? bytes : 0);
  }
}

TEST(Zero, Stage2ReducesEveryMicroBatchAndKeepsShards) {
  ParallelPlan plan = ddp(4);
  plan.zero_stage = 2;
  const StepProgram program = build(small_model(), small_training(3), plan);
  const RankClass& c = program.classes.front();
  const std::int64_t bytes = 4 * parameter_count(program.model);
  EXPECT_EQ(payload_of(c, InstructionKind::reduce_scatter_grads), 3 * bytes);
  std::int64_t shards = 0;
  for (const Buffer& b : c.buffers) {
    if (b.memory_class == MemoryClass::gradients) shards += b.bytes.count();
  }
  EXPECT_EQ(shards, bytes / 4);
}

}  // namespace
}  // namespace foretrain
