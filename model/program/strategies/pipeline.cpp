#include "model/program/strategies/pipeline.h"

#include <algorithm>

#include <fmt/format.h>

namespace foretrain {

PipelineTransfers::PipelineTransfers(const StageContext& context) : context_(context) {
  received_.resize(2 * context.stage.chunks.size() *
                   static_cast<std::size_t>(context.training.micro_batches));
}

bool PipelineTransfers::receives(const ScheduledTask& task) const {
  return task.forward ? !context_.stage.is_first_part(task.chunk) : !context_.stage.is_last_part(task.chunk);
}

bool PipelineTransfers::sends(const ScheduledTask& task) const {
  if (task.forward) return !context_.stage.is_last_part(task.chunk);
  return !context_.stage.is_first_part(task.chunk) && !context_.plan.pp_forward_only_ranks;
}

PipelineTransfers::Received& PipelineTransfers::received(bool forward, std::int32_t chunk,
                                                         std::int32_t micro_batch) {
  const auto micro_batches = static_cast<std::size_t>(context_.training.micro_batches);
  const std::size_t index =
      static_cast<std::size_t>(chunk) * micro_batches + static_cast<std::size_t>(micro_batch);
  return received_[2 * index + (forward ? 0 : 1)];
}

namespace {

// Tags are unique in the step: by boundary between parts, micro-batch and direction.
std::int32_t tag_of(std::int32_t boundary, std::int64_t micro_batches, std::int32_t micro_batch,
                    bool forward) {
  return static_cast<std::int32_t>(2 * (boundary * micro_batches + micro_batch) + (forward ? 0 : 1));
}

}  // namespace

void PipelineTransfers::receive(std::size_t task_index, InstructionId after) {
  const ScheduledTask& task = context_.stage.tasks[task_index];
  if (!receives(task)) return;
  const Stage& stage = context_.stage;
  const BlockRange& chunk = stage.chunks[static_cast<std::size_t>(task.chunk)];
  const std::int32_t part = stage.part_of(task.chunk);
  const std::int32_t from = task.forward ? part - 1 : part + 1;
  const std::int32_t boundary = std::min(part, from);
  // The tensor between two parts is the output of the last block of the earlier part.
  const std::int32_t block = task.forward ? chunk.begin - 1 : chunk.end - 1;
  const BlockExpansion& maker = context_.lists.expansion(block);

  InstructionDraft draft(InstructionKind::recv, StreamKind::pipeline_recv);
  draft.instruction.collective = CollectiveKind::send_recv;
  draft.instruction.block = block;
  draft.instruction.micro_batch = task.micro_batch;
  draft.instruction.chunk = task.chunk;
  draft.instruction.payload = maker.boundary_bytes;
  draft.instruction.dtype = maker.boundary_dtype;
  draft.instruction.peer_stage = from % stage.count;
  draft.instruction.tag = tag_of(boundary, context_.training.micro_batches, task.micro_batch, task.forward);
  draft.after(after);
  Received& slot = received(task.forward, task.chunk, task.micro_batch);
  slot.buffer = context_.writer.buffer(
      fmt::format("received {} of block {}, micro-batch {}", task.forward ? "output" : "output gradient",
                  block, task.micro_batch),
      maker.boundary_bytes, MemoryClass::activations);
  draft.allocates.push_back(slot.buffer);
  slot.recv = context_.writer.add(draft);
}

void PipelineTransfers::before_task(std::size_t task, InstructionId last) {
  const std::vector<ScheduledTask>& tasks = context_.stage.tasks;
  if (context_.plan.schedule == PipelineSchedule::sequential) {
    receive(task, last);
    return;
  }
  if (task == 0) receive(0, InstructionId{});
  // Posted while `task` runs: when the task before it has ended.
  if (task + 1 < tasks.size()) receive(task + 1, last);
}

void PipelineTransfers::add_waits(const ComputeStep& step, InstructionDraft& draft) {
  if (step.first_of_task) draft.after(received(step.forward, step.chunk, step.micro_batch).recv);
}

void PipelineTransfers::add_frees(const ComputeStep& step, InstructionDraft& draft) {
  if (step.forward) return;
  if (step.first_of_task) draft.frees.push_back(received(false, step.chunk, step.micro_batch).buffer);
  if (step.last_of_task) draft.frees.push_back(received(true, step.chunk, step.micro_batch).buffer);
}

void PipelineTransfers::after_task(const ComputeStep& step, InstructionId last) {
  const Stage& stage = context_.stage;
  const ScheduledTask& task = stage.tasks[static_cast<std::size_t>(step.task)];
  if (!sends(task)) return;
  const std::int32_t part = stage.part_of(task.chunk);
  const std::int32_t to = task.forward ? part + 1 : part - 1;
  // Forward: the output of the chunk's last block. Backward: the gradient of the output of the block before.
  const std::int32_t maker = task.forward ? step.block : step.block - 1;
  InstructionDraft draft(InstructionKind::send, StreamKind::pipeline_send);
  draft.instruction.collective = CollectiveKind::send_recv;
  draft.instruction.block = maker;
  draft.instruction.micro_batch = task.micro_batch;
  draft.instruction.chunk = task.chunk;
  draft.instruction.payload = context_.lists.expansion(maker).boundary_bytes;
  draft.instruction.dtype = context_.lists.expansion(maker).boundary_dtype;
  draft.instruction.peer_stage = to % stage.count;
  draft.instruction.tag =
      tag_of(std::min(part, to), context_.training.micro_batches, task.micro_batch, task.forward);
  draft.after(last);
  const BlockExpansion& own = context_.lists.expansion(step.block);
  const std::int32_t tensor = task.forward ? own.output : own.input_gradient;
  if (tensor >= 0) draft.tensor_frees.push_back({step.block, tensor});
  context_.writer.add(draft);
}

void exchange_tied_gradient(const StageContext& context, MeshDims sharded_over,
                            const std::vector<InstructionId>& after) {
  const Stage& stage = context.stage;
  if (!context.model.tied_head || stage.count == 1 || !(stage.holds_embedding || stage.holds_head)) return;
  const std::int32_t block =
      stage.holds_embedding ? 0 : static_cast<std::int32_t>(block_count(context.model)) - 1;
  const std::vector<Parameter>& parameters = context.lists.parameters(block);
  std::int64_t elements = 0;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].name == "embedding.token.weight" || parameters[p].tied_to_embedding) {
      elements = context.lists.elements(block, static_cast<std::int32_t>(p));
    }
  }
  const Bytes bytes =
      divide_up(Bytes(elements), context.mesh.group_size(sharded_over)) * size_of(context.parameter_type());
  const std::int32_t other = stage.holds_embedding ? stage.count - 1 : 0;
  const std::int32_t parts = stage.count * static_cast<std::int32_t>(stage.chunks.size());
  const std::int32_t first_tag = tag_of(parts, context.training.micro_batches, 0, true);

  const auto transfer = [&](InstructionKind kind, StreamKind stream, bool from_embedding) {
    InstructionDraft draft(kind, stream);
    draft.instruction.collective = CollectiveKind::send_recv;
    draft.instruction.block = block;
    draft.instruction.payload = bytes;
    draft.instruction.dtype = context.parameter_type();
    draft.instruction.peer_stage = other;
    draft.instruction.tag = first_tag + (from_embedding ? 0 : 1);
    draft.after(context.writer.last(StreamKind::compute));
    for (const InstructionId id : after) draft.after(id);
    return draft;
  };
  const InstructionId send =
      context.writer.add(transfer(InstructionKind::send, StreamKind::pipeline_send, stage.holds_embedding));
  InstructionDraft recv = transfer(InstructionKind::recv, StreamKind::pipeline_recv, !stage.holds_embedding);
  const std::int32_t buffer =
      context.writer.buffer("received embedding gradient", bytes, MemoryClass::communication);
  recv.allocates.push_back(buffer);
  const InstructionId received = context.writer.add(recv);

  Op add;
  add.role = OpRole::copy;
  add.name = "gradient.add_tied";
  add.read = bytes * 2;
  add.written = bytes;
  InstructionDraft sum(InstructionKind::copy_gradients, StreamKind::compute);
  sum.instruction.block = block;
  sum.instruction.op_list = context.lists.add_list({add});
  sum.after(send);
  sum.after(received);
  sum.frees.push_back(buffer);
  context.writer.add(sum);
}

}  // namespace foretrain
