// What tensor parallelism adds outside the op lists.
#pragma once

#include <vector>

#include "model/program/strategies/gradient_strategy.h"

namespace foretrain {

// Under Megatron's sequence parallelism the norms and the biases of row-parallel layers see only their part
// of the sequence: their gradients are summed over tp in one all-reduce at the step's end (Megatron-LM,
// finalize_model_grads.py). Without sequence parallelism, and under column_gather, replicated parameters
// have equal gradients on all ranks. `after`: the gradients are reduced. Returns what to wait for next.
std::vector<InstructionId> reduce_replicated_gradients(const StageContext& context, MeshDims sharded_over,
                                                       std::vector<InstructionId> after);

}  // namespace foretrain
