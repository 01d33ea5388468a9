#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/program/block_lists.h"
#include "model/program/instruction_writer.h"
#include "model/program/stage.h"
#include "model/program/step_end.h"
#include "model/program/step_program.h"
#include "model/program/strategies/gradient_strategy.h"
#include "model/program/strategies/pipeline.h"
#include "model/program/strategies/tensor_parallel.h"

namespace foretrain {
namespace {

// Issues the instructions of one stage.
class StageBuilder {
 public:
  StageBuilder(StepProgram& program, BlockLists& lists, std::int32_t index)
      : rank_class_(program.classes[static_cast<std::size_t>(index)]),
        stage_(make_stage(program.model, program.training, program.plan, index)),
        writer_(rank_class_),
        context_{program.model, program.training, program.plan, program.mesh,
                 lists,         stage_,           rank_class_,  writer_},
        strategy_(make_gradient_strategy(context_)),
        transfers_(context_) {}

  void run() {
    rank_class_.stage = stage_.index;
    rank_class_.blocks = stage_.blocks;
    rank_class_.gradients = strategy_->allocation();
    for (const std::int32_t block : stage_.blocks) rank_class_.parameters += context_.lists.elements(block);
    persistent_memory();
    step_begin();
    for (std::size_t position = 0; position < stage_.steps.size(); ++position) compute_step(position);
    if (stage_.runs_backward) update();
    if (context_.training.log_loss_every_step && stage_.holds_head) {
      InstructionDraft loss(InstructionKind::device_to_host, StreamKind::compute);
      loss.instruction.payload = Bytes(4);
      loss.instruction.blocks_host = true;
      writer_.add(loss);
    }
  }

 private:
  std::int64_t count_layers(const std::vector<std::int32_t>& blocks) const {
    return std::count_if(blocks.begin(), blocks.end(), [&](std::int32_t block) {
      return block_kind(context_.model, block) == BlockKind::layer;
    });
  }

  void persistent_memory() {
    strategy_->add_persistent_buffers();
    std::vector<std::int32_t> held = stage_.blocks;
    if (context_.plan.pp_forward_only_ranks) {
      // The reference builds the whole model on every rank and runs a part of it.
      std::vector<std::int32_t> idle;
      for (std::int32_t block = 0; block < block_count(context_.model); ++block) {
        if (std::find(held.begin(), held.end(), block) == held.end()) idle.push_back(block);
      }
      // A whole model has its tied weight once; which of the two names is held here is counted already.
      const char* twin = stage_.holds_head ? "embedding.token.weight" : "head.lm_head.weight";
      add_parameter_buffers(context_, idle, context_.model.tied_head ? twin : "");
      held.insert(held.end(), idle.begin(), idle.end());
    }
    if (!context_.model.causal_mask_buffers) return;
    const std::int64_t layers = count_layers(held);
    writer_.persistent("causal masks", mask_bytes() * layers, MemoryClass::buffers,
                       static_cast<std::int32_t>(layers));
  }

  Bytes mask_bytes() const {
    return Bytes(context_.model.max_positions * context_.model.max_positions * size_of(DType::fp32));
  }

  // zero_grad, the batch, and DDP's broadcast of buffers.
  void step_begin() {
    if (stage_.runs_backward) {
      writer_.add(InstructionDraft(InstructionKind::zero_grad, StreamKind::compute));
    }
    const std::int64_t tensors = (stage_.holds_embedding ? 1 : 0) + (stage_.holds_head ? 1 : 0);
    if (tensors > 0) {  // token ids for the embedding, targets for the loss
      InstructionDraft batch(InstructionKind::host_to_device, StreamKind::copy);
      batch.instruction.dtype = DType::int64;
      batch.instruction.payload = Bytes(tensors * context_.training.micro_batches *
                                        context_.training.tokens_per_micro_batch() * size_of(DType::int64));
      batch.allocates.push_back(writer_.buffer("batch", batch.instruction.payload, MemoryClass::buffers,
                                               static_cast<std::int32_t>(tensors)));
      batch_ = writer_.add(batch);
    }
    const Bytes masks = mask_bytes() * count_layers(stage_.blocks);
    const ParallelPlan& plan = context_.plan;
    if (plan.ddp.broadcast_buffers && plan.dp > 1 && plan.fsdp == 1 && plan.zero_stage == 0 &&
        context_.model.causal_mask_buffers && masks > Bytes(0)) {
      InstructionDraft broadcast(InstructionKind::broadcast_buffers, StreamKind::data_parallel);
      broadcast.instruction.collective = CollectiveKind::broadcast;
      broadcast.instruction.group = mesh_dims(MeshDim::dp);
      broadcast.instruction.payload = masks;
      broadcast_ = writer_.add(broadcast);
    }
  }

  void compute_step(std::size_t position) {
    const ComputeStep& step = stage_.steps[position];
    if (step.first_of_task) transfers_.before_task(static_cast<std::size_t>(step.task), last_);
    const std::int32_t recompute = step.forward ? -1 : context_.lists.recompute(step.block);

    InstructionDraft first(step.forward     ? InstructionKind::forward
                           : recompute >= 0 ? InstructionKind::recompute
                                            : InstructionKind::backward,
                           StreamKind::compute);
    first.instruction.block = step.block;
    first.instruction.micro_batch = step.micro_batch;
    first.instruction.chunk = step.chunk;
    const BlockKind kind = block_kind(context_.model, step.block);
    if (step.forward && kind != BlockKind::layer) first.after(batch_);
    first.after(std::exchange(broadcast_, InstructionId{}));
    transfers_.add_waits(step, first);
    strategy_->before(position, first);
    const BackwardList* list = nullptr;
    if (step.forward) {
      first.instruction.op_list = context_.lists.forward(step.block);
    } else {
      list = &context_.lists.backward(step.block, strategy_->form_of(step));
      first.instruction.op_list = list->op_list;
      if (recompute >= 0) {
        InstructionDraft again = first;
        again.instruction.op_list = recompute;
        writer_.add(again);
        first.instruction.kind = InstructionKind::backward;
        first.dependencies.clear();
        first.allocates.clear();
      }
    }
    add_frees(step, first);
    last_ = writer_.add(first);
    strategy_->after(position, last_, list);
    if (step.last_of_task) transfers_.after_task(step, last_);
  }

  // Boundary tensors between blocks of one chunk, which no op list frees.
  void add_frees(const ComputeStep& step, InstructionDraft& draft) {
    transfers_.add_frees(step, draft);
    if (step.forward) return;
    const BlockLists& lists = context_.lists;
    const auto free_tensor = [&](std::int32_t block, std::int32_t tensor) {
      if (tensor >= 0) draft.tensor_frees.push_back({block, tensor});
    };
    if (!step.last_of_task) free_tensor(step.block - 1, lists.expansion(step.block - 1).output);
    if (!step.first_of_task) free_tensor(step.block + 1, lists.expansion(step.block + 1).input_gradient);
    if (block_kind(context_.model, step.block) == BlockKind::embedding) {
      free_tensor(lists.tied_gradient().block, lists.tied_gradient().tensor);
    }
  }

  void update() {
    const MeshDims sharded_over = strategy_->sharded_over();
    std::vector<InstructionId> waits = strategy_->after_backward();
    waits = reduce_replicated_gradients(context_, sharded_over, std::move(waits));
    if (!context_.plan.pp_forward_only_ranks) exchange_tied_gradient(context_, sharded_over, waits);
    strategy_->after_optimizer(add_step_end(context_, strategy_->update(), sharded_over, waits));
  }

  RankClass& rank_class_;
  Stage stage_;
  InstructionWriter writer_;
  StageContext context_;
  std::unique_ptr<GradientStrategy> strategy_;
  PipelineTransfers transfers_;
  InstructionId last_;  // the compute instruction issued last
  InstructionId batch_, broadcast_;
};

}  // namespace

Expected<StepProgram> build_step_program(const TransformerConfig& model, const TrainingSpec& training,
                                         const ParallelPlan& plan) {
  Errors errors = check(model);
  for (Error& error : errors) error.where.path = "model." + error.where.path;
  if (errors.empty()) errors = check(plan, model, training);
  if (!errors.empty()) return fail(std::move(errors));

  StepProgram program;
  program.model = model;
  program.training = training;
  program.plan = plan;
  program.mesh = plan.mesh();
  program.classes.resize(static_cast<std::size_t>(plan.pp));
  BlockLists lists(program);
  for (std::int32_t stage = 0; stage < plan.pp; ++stage) StageBuilder(program, lists, stage).run();
  if (plan.pp_forward_only_ranks) {
    program.warnings.push_back(fmt::format(
        "pp_forward_only_ranks: this is NOT a correct training step. Only the last of {} pipeline stages "
        "runs a "
        "backward; the parameters of the others are never updated. Its time and memory say nothing about a "
        "correct step.",
        plan.pp));
  }
  return program;
}

}  // namespace foretrain
