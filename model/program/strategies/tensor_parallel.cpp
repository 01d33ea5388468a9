#include "model/program/strategies/tensor_parallel.h"

namespace foretrain {

std::vector<InstructionId> reduce_replicated_gradients(const StageContext& context, MeshDims sharded_over,
                                                       std::vector<InstructionId> after) {
  const ParallelPlan& plan = context.plan;
  if (plan.tp == 1 || plan.tp_kind != TensorParallelKind::megatron || !plan.sequence_parallel) return after;
  std::int64_t elements = 0;
  for (const std::int32_t block : context.stage.blocks) {
    // Position embeddings are added before the sequence is split.
    if (block_kind(context.model, block) == BlockKind::embedding) continue;
    const std::vector<Parameter>& parameters = context.lists.parameters(block);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (parameters[p].megatron_split != TensorSplit::replicated) continue;
      elements += context.lists.elements(block, static_cast<std::int32_t>(p));
    }
  }
  if (elements == 0) return after;
  const std::int64_t shards = context.mesh.group_size(sharded_over);
  InstructionDraft draft(InstructionKind::all_reduce_grads, StreamKind::data_parallel);
  draft.instruction.group = mesh_dims(MeshDim::tp);
  draft.instruction.dtype = context.parameter_type();
  draft.instruction.payload = Bytes((elements + shards - 1) / shards * size_of(context.parameter_type()));
  for (const InstructionId id : after) draft.after(id);
  draft.after(context.writer.last(StreamKind::compute));
  return {context.writer.add(draft)};
}

}  // namespace foretrain
