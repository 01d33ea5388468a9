#include "model/program/step_end.h"

#include <utility>

#include "model/ops/optimizer.h"

namespace foretrain {
namespace {

class StepEnd {
 public:
  StepEnd(const StageContext& context, const UpdateShare& share, MeshDims sharded_over,
          std::vector<InstructionId> after)
      : context_(context), share_(share), waits_(std::move(after)) {
    agree_over_ = sharded_over.with(MeshDim::tp);
    // Stages that run no backward have nothing to say.
    if (!context.plan.pp_forward_only_ranks) agree_over_ = agree_over_.with(MeshDim::pp);
  }

  InstructionId run() {
    const TrainingSpec& training = context_.training;
    const DType stored = context_.parameter_type();
    const bool scaled = training.precision == Precision::fp16_amp;
    const bool host_reads_flag = scaled && training.optimizer != Optimizer::adamw_fused;
    if (scaled) {
      const bool agreed = context_.mesh.group_size(agree_over_) > 1;
      compute(InstructionKind::unscale, unscale_ops(share_.elements, share_.tensors, stored),
              host_reads_flag && !agreed);
      agree(host_reads_flag);
    }
    if (training.clip_gradients) {
      compute(InstructionKind::grad_norm, grad_norm_ops(share_.elements, share_.tensors, stored), false);
      agree(false);
      compute(InstructionKind::clip, clip_ops(share_.elements, share_.tensors, stored), false);
    }
    std::vector<Op> ops = optimizer_ops(training, share_.elements, share_.tensors, stored);
    if (scaled) {
      Op update;
      update.role = OpRole::gradient_scaling;
      update.name = "scaler.update";
      update.read = Bytes(12);
      update.written = Bytes(8);
      ops.push_back(std::move(update));
    }
    workspace_ = context_.writer.buffer("optimizer workspace",
                                        optimizer_workspace_bytes(training, share_.elements, stored),
                                        MemoryClass::workspace, static_cast<std::int32_t>(share_.tensors));
    return compute(InstructionKind::optimizer_step, std::move(ops), false);
  }

 private:
  InstructionId compute(InstructionKind kind, std::vector<Op> ops, bool blocks_host) {
    InstructionDraft draft(kind, StreamKind::compute);
    draft.instruction.op_list = context_.lists.add_list(std::move(ops));
    draft.instruction.blocks_host = blocks_host;
    for (const InstructionId id : std::exchange(waits_, {})) draft.after(id);
    if (kind == InstructionKind::optimizer_step) {
      draft.allocates.push_back(workspace_);
      draft.frees.push_back(workspace_);
    }
    return last_ = context_.writer.add(draft);
  }

  // One fp32 number reduced over all ranks that hold other gradients.
  void agree(bool blocks_host) {
    if (context_.mesh.group_size(agree_over_) == 1) return;
    InstructionDraft draft(InstructionKind::all_reduce_flag, StreamKind::data_parallel);
    draft.instruction.group = agree_over_;
    draft.instruction.payload = Bytes(4);
    draft.instruction.blocks_host = blocks_host;
    draft.after(last_);
    waits_ = {context_.writer.add(draft)};
  }

  StageContext context_;
  UpdateShare share_;
  MeshDims agree_over_;
  std::vector<InstructionId> waits_;
  InstructionId last_;
  std::int32_t workspace_ = -1;
};

}  // namespace

InstructionId add_step_end(const StageContext& context, const UpdateShare& share, MeshDims sharded_over,
                           const std::vector<InstructionId>& after) {
  return StepEnd(context, share, sharded_over, after).run();
}

}  // namespace foretrain
