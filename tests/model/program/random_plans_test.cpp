// Every plan that check() accepts gives a program that can run and that conserves bytes.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/model/program/program_fixture.h"

#include <rapidcheck/gtest.h>

namespace foretrain {
namespace {

struct Case {
  TransformerConfig model;
  TrainingSpec training;
  ParallelPlan plan;
};

Case random_case() {
  Case c;
  c.model = small_model(*rc::gen::inRange<std::int64_t>(1, 10));
  c.model.tied_head = *rc::gen::arbitrary<bool>();
  c.model.causal_mask_buffers = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    c.model.positions = PositionKind::rotary;
    c.model.norm = NormKind::rms_norm;
    c.model.activation = Activation::swiglu;
    c.model.fused_qkv = false;
    c.model.kv_heads = 2;
  }
  c.training = small_training(*rc::gen::inRange<std::int64_t>(1, 9));
  c.training.precision = *rc::gen::element(Precision::fp32, Precision::tf32, Precision::fp16_amp,
                                           Precision::bf16_amp, Precision::bf16);
  c.training.optimizer = *rc::gen::element(Optimizer::adamw_foreach, Optimizer::adamw_fused, Optimizer::sgd);
  c.training.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  c.training.attention = *rc::gen::element(AttentionKernel::eager, AttentionKernel::flash);
  c.training.clip_gradients = *rc::gen::arbitrary<bool>();
  c.training.log_loss_every_step = *rc::gen::arbitrary<bool>();
  ParallelPlan& p = c.plan;
  p.dp = *rc::gen::inRange(1, 5);
  p.tp = *rc::gen::element(1, 1, 2, 4);
  p.pp = *rc::gen::inRange(1, 6);
  p.tp_kind = *rc::gen::element(TensorParallelKind::column_gather, TensorParallelKind::megatron);
  p.sequence_parallel = p.tp_kind == TensorParallelKind::megatron && *rc::gen::arbitrary<bool>();
  p.schedule = *rc::gen::element(PipelineSchedule::sequential, PipelineSchedule::gpipe,
                                 PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved);
  if (p.schedule == PipelineSchedule::interleaved && p.pp > 1) p.virtual_stages = *rc::gen::inRange(1, 4);
  p.pp_forward_only_ranks = p.pp > 1 && *rc::gen::inRange(0, 4) == 0;
  if (*rc::gen::arbitrary<bool>()) {
    p.fsdp = *rc::gen::inRange(1, 5);
    p.fsdp_options.unit = *rc::gen::element(FsdpUnit::whole_model, FsdpUnit::block);
    p.fsdp_options.sharding = *rc::gen::element(FsdpSharding::full_shard, FsdpSharding::shard_grad_op);
    p.fsdp_options.prefetch_forward = *rc::gen::arbitrary<bool>();
    p.fsdp_options.prefetch_backward = *rc::gen::arbitrary<bool>();
    p.fsdp_options.parameter_payload = *rc::gen::element(DType::fp32, DType::bf16);
    p.fsdp_options.gradient_payload = *rc::gen::element(DType::fp32, DType::bf16);
  } else {
    p.zero_stage = *rc::gen::inRange(0, 3);
    p.ddp.overlap = *rc::gen::arbitrary<bool>();
    p.ddp.gradient_as_bucket_view = *rc::gen::arbitrary<bool>();
    p.ddp.broadcast_buffers = *rc::gen::arbitrary<bool>();
    p.ddp.first_bucket = Bytes(*rc::gen::inRange(1, 100000));
    p.ddp.bucket = Bytes(*rc::gen::inRange(1, 1000000));
  }
  return c;
}

RC_GTEST_PROP(RandomPlans, AcceptedPlansGiveProgramsThatRun, ()) {
  const Case c = random_case();
  RC_PRE(check(c.plan, c.model, c.training).empty());
  const auto program = build_step_program(c.model, c.training, c.plan);
  RC_ASSERT(program.has_value());
  const Errors errors = check(*program);
  if (!errors.empty()) RC_FAIL(describe(c.plan) + "\n" + to_text(errors));
}

RC_GTEST_PROP(RandomPlans, RejectedPlansAreNotBuilt, ()) {
  Case c = random_case();
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      c.plan.pp = static_cast<std::int32_t>(c.model.layers) + 1;
      break;
    case 1:
      c.plan.tp = 3;
      break;
    case 2:
      c.plan.dp = 0;
      break;
    default:
      c.training.micro_batches = 0;
      break;
  }
  const Errors errors = check(c.plan, c.model, c.training);
  RC_ASSERT(!errors.empty());
  RC_ASSERT(!build_step_program(c.model, c.training, c.plan).has_value());
  for (const Error& e : errors) {
    RC_ASSERT(e.where.path.starts_with("parallel.") || e.where.path.starts_with("training."));
    RC_ASSERT(!e.message.empty());
  }
}

// Tensors of a block are freed once, by an instruction that comes after the one whose list made them, and
// nothing but the loss's own outputs is left when the step is correct.
RC_GTEST_PROP(RandomPlans, EveryTensorOfACorrectStepIsFreedExactlyOnce, ()) {
  const Case c = random_case();
  RC_PRE(check(c.plan, c.model, c.training).empty() && !c.plan.pp_forward_only_ranks);
  const auto program = build_step_program(c.model, c.training, c.plan);
  RC_ASSERT(program.has_value());
  for (const RankClass& rank_class : program->classes) {
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, int> alive;
    for (const Instruction& i : rank_class.instructions) {
      if (i.op_list >= 0) {
        for (const Op& op : program->op_lists[static_cast<std::size_t>(i.op_list)].ops) {
          for (const std::int32_t t : op.allocates)
            RC_ASSERT(++alive[std::tuple(i.block, i.micro_batch, t)] == 1);
          for (const std::int32_t t : op.frees)
            RC_ASSERT(--alive[std::tuple(i.block, i.micro_batch, t)] == 0);
        }
      }
      for (const TensorRef& r : rank_class.tensor_frees_of(i)) {
        RC_ASSERT(--alive[std::tuple(r.block, i.micro_batch, r.tensor)] == 0);
      }
    }
    for (const auto& [key, count] : alive) {
      if (count != 0) {
        const auto& [block, micro_batch, tensor] = key;
        RC_FAIL("tensor " + std::to_string(tensor) + " of block " + std::to_string(block) + " is left");
      }
    }
  }
}

// What is sent and reduced does not depend on the pipeline schedule.
RC_GTEST_PROP(RandomPlans, SchedulesMoveTheSameBytes, ()) {
  Case c = random_case();
  c.model.layers = 6;
  c.plan.virtual_stages = 1;
  c.plan.fsdp = 1;
  c.plan.pp = *rc::gen::inRange(2, 6);
  std::vector<std::int64_t> totals;
  for (const PipelineSchedule schedule :
       {PipelineSchedule::sequential, PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    c.plan.schedule = schedule;
    RC_PRE(check(c.plan, c.model, c.training).empty());
    const auto program = build_step_program(c.model, c.training, c.plan);
    RC_ASSERT(program.has_value());
    std::int64_t total = 0;
    for (const RankClass& rank_class : program->classes) {
      for (const Instruction& i : rank_class.instructions) total += i.payload.count();
    }
    totals.push_back(total);
  }
  RC_ASSERT(totals[0] == totals[1]);
  RC_ASSERT(totals[1] == totals[2]);
}

}  // namespace
}  // namespace foretrain
