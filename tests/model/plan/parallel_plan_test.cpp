#include "model/plan/parallel_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace foretrain {
namespace {

using ::testing::HasSubstr;

struct PlanCase {
  TransformerConfig model;
  TrainingSpec training;
  ParallelPlan plan;
};

PlanCase gpt_like() {
  PlanCase s;
  s.model.layers = 12;
  s.model.hidden = 768;
  s.model.heads = s.model.kv_heads = 12;
  s.model.head_dim = 64;
  s.model.ffn_hidden = 3072;
  s.model.vocab = 50257;
  s.model.max_positions = 1024;
  return s;
}

TEST(ParallelPlan, DescribesItself) {
  ParallelPlan p;
  EXPECT_EQ(describe(p), "single");
  p.dp = 4;
  EXPECT_EQ(describe(p), "DDP x4");
  p.zero_stage = 1;
  EXPECT_EQ(describe(p), "ZeRO-1 x4");
  p.zero_stage = 0;
  p.tp = 8;
  p.sequence_parallel = true;
  p.pp = 4;
  p.dp = 2;
  EXPECT_EQ(describe(p), "TP8 (megatron, sequence parallel) x PP4 1F1B x DP2");
  p = ParallelPlan{};
  p.fsdp = 8;
  EXPECT_EQ(describe(p), "FSDP x8 per block");
  p.fsdp_options.unit = FsdpUnit::whole_model;
  p.fsdp_options.sharding = FsdpSharding::shard_grad_op;
  p.dp = 2;
  EXPECT_EQ(describe(p), "HSDP 2x8 whole model (SHARD_GRAD_OP)");
  p = ParallelPlan{};
  p.pp = 4;
  p.schedule = PipelineSchedule::interleaved;
  p.virtual_stages = 2;
  EXPECT_EQ(describe(p), "PP4 interleaved 1F1B (2 chunks)");
  p = ParallelPlan{};
  p.tp = 2;
  p.tp_kind = TensorParallelKind::column_gather;
  EXPECT_EQ(describe(p), "TP2 (column gather)");
}

TEST(ParallelPlan, OrdinaryPlansAreAccepted) {
  for (const int tp : {1, 2, 3, 4, 6, 12}) {
    for (const int pp : {1, 2, 5, 12}) {  // stages need not be equal
      PlanCase s = gpt_like();
      s.plan.tp = tp;
      s.plan.pp = pp;
      s.plan.dp = 3;
      EXPECT_TRUE(check(s.plan, s.model, s.training).empty()) << tp << " " << pp;
    }
  }
}

struct Wrong {
  const char* name;
  std::function<void(PlanCase&)> make;
  const char* path;
  const char* message;
  const char* hint;
};

const std::vector<Wrong>& wrong_plans() {
  static const std::vector<Wrong> list = {
      {"zero ranks", [](PlanCase& s) { s.plan.dp = 0; }, "parallel.dp",
       "is 0; expected a whole number from 1", ""},
      {"negative pp", [](PlanCase& s) { s.plan.pp = -2; }, "parallel.pp", "is -2", ""},
      {"too many ranks",
       [](PlanCase& s) {
         s.plan.dp = 1 << 20;
         s.plan.fsdp = 1 << 20;
       },
       "parallel", "1048576 x fsdp 1048576", "smaller"},
      {"tp against heads", [](PlanCase& s) { s.plan.tp = 5; }, "parallel.tp",
       "is 5, which does not divide model.heads = 12", "nearest divisors of model.heads: 4 and 6"},
      {"tp beyond heads", [](PlanCase& s) { s.plan.tp = 24; }, "parallel.tp", "is 24",
       "nearest divisor of model.heads: 12"},
      {"tp against kv heads",
       [](PlanCase& s) {
         s.model.heads = 12;
         s.model.kv_heads = 4;
         s.plan.tp = 6;
       },
       "parallel.tp", "model.kv_heads = 4", "nearest divisor of model.kv_heads: 4"},
      {"tp against mlp",
       [](PlanCase& s) {
         s.plan.tp = 4;
         s.model.ffn_hidden = 3074;
       },
       "parallel.tp", "does not divide model.ffn_hidden = 3074", "2 and 29"},
      {"column gather against columns",
       [](PlanCase& s) {
         s.plan.tp = 5;
         s.plan.tp_kind = TensorParallelKind::column_gather;
       },
       "parallel.tp", "does not divide the columns of qkv = 2304", "4 and 6"},
      {"sequence parallel column gather",
       [](PlanCase& s) {
         s.plan.tp = 2;
         s.plan.tp_kind = TensorParallelKind::column_gather;
         s.plan.sequence_parallel = true;
       },
       "parallel.sequence_parallel", "column_gather", "megatron"},
      {"sequence parallel against sequence",
       [](PlanCase& s) {
         s.plan.tp = 4;
         s.plan.sequence_parallel = true;
         s.training.sequence_length = 510;
       },
       "parallel.tp", "training.sequence_length = 510", "3 and 5"},
      {"more stages than layers", [](PlanCase& s) { s.plan.pp = 13; }, "parallel.pp",
       "is 13, more than model.layers = 12", "at most 12"},
      {"more chunks than layers",
       [](PlanCase& s) {
         s.plan.pp = 4;
         s.plan.schedule = PipelineSchedule::interleaved;
         s.plan.virtual_stages = 4;
         s.training.micro_batches = 4;
       },
       "parallel.virtual_stages", "4 stages x 4 chunks = 16 parts", "at most 3"},
      {"chunks without interleaving",
       [](PlanCase& s) {
         s.plan.pp = 2;
         s.plan.virtual_stages = 2;
       },
       "parallel.virtual_stages", "only the interleaved schedule", "interleaved"},
      {"chunks without pipeline",
       [](PlanCase& s) {
         s.plan.schedule = PipelineSchedule::interleaved;
         s.plan.virtual_stages = 2;
       },
       "parallel.virtual_stages", "parallel.pp is 1", "to 1"},
      {"interleaved micro-batches",
       [](PlanCase& s) {
         s.plan.pp = 4;
         s.plan.schedule = PipelineSchedule::interleaved;
         s.plan.virtual_stages = 2;
         s.training.micro_batches = 6;
       },
       "training.micro_batches", "needs a multiple of parallel.pp = 4", "use 4 or 8"},
      {"forward-only without pipeline", [](PlanCase& s) { s.plan.pp_forward_only_ranks = true; },
       "parallel.pp_forward_only_ranks", "parallel.pp is 1", "false"},
      {"ZeRO-3", [](PlanCase& s) { s.plan.zero_stage = 3; }, "parallel.zero_stage",
       "is 3; expected 0, 1 or 2", "ZeRO-3 is parallel.fsdp"},
      {"ZeRO and FSDP",
       [](PlanCase& s) {
         s.plan.zero_stage = 1;
         s.plan.fsdp = 2;
       },
       "parallel.zero_stage", "shards the optimizer state already", "zero_stage to 0"},
      {"empty bucket", [](PlanCase& s) { s.plan.ddp.bucket = Bytes(0); }, "parallel.ddp.bucket", "is 0 B",
       ""},
      {"integer payload", [](PlanCase& s) { s.plan.fsdp_options.gradient_payload = DType::int64; },
       "parallel.fsdp_options.gradient_payload", "is int64", ""},
      {"sequence beyond positions", [](PlanCase& s) { s.training.sequence_length = 2048; },
       "training.sequence_length", "learned positions for 1024", "at most 1024"},
      {"no micro-batches", [](PlanCase& s) { s.training.micro_batches = 0; }, "training.micro_batches",
       "is 0", ""},
      {"huge micro-batch", [](PlanCase& s) { s.training.micro_batch_size = std::int64_t{1} << 40; },
       "training.micro_batch_size", "more than 268435456 tokens", "smaller"},
  };
  return list;
}

TEST(ParallelPlan, ContradictionsNameThePathTheNumbersAndAWayOut) {
  for (const Wrong& wrong : wrong_plans()) {
    SCOPED_TRACE(wrong.name);
    PlanCase s = gpt_like();
    wrong.make(s);
    const Errors errors = check(s.plan, s.model, s.training);
    ASSERT_FALSE(errors.empty());
    EXPECT_EQ(errors.front().where.path, wrong.path);
    EXPECT_THAT(errors.front().message, HasSubstr(wrong.message));
    EXPECT_THAT(errors.front().hint, HasSubstr(wrong.hint));
  }
}

TEST(ParallelPlan, AllContradictionsAreReportedAtOnce) {
  PlanCase s = gpt_like();
  s.plan.tp = 5;
  s.plan.pp = 13;
  s.plan.zero_stage = 7;
  s.training.sequence_length = 4096;
  EXPECT_GE(check(s.plan, s.model, s.training).size(), 4u);
}

}  // namespace
}  // namespace foretrain
