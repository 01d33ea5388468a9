// What follows the backwards on the compute stream: unscaling (AMP), clipping, the optimizer.
#pragma once

#include <vector>

#include "model/program/strategies/gradient_strategy.h"

namespace foretrain {

// fp16 AMP: unscale, agree on the found-inf flag, wait for it on the host (GradScaler.step reads it; the
// fused optimizer reads it on the device). Clipping: norm of the rank's gradients, its sum over all shards,
// scaling. Then the optimizer. The flag and the norm are agreed over tp, pp and `sharded_over`: the
// dimensions along which ranks hold different gradients. `after`: what the gradients still wait for. Returns
// the optimizer.
InstructionId add_step_end(const StageContext& context, const UpdateShare& share, MeshDims sharded_over,
                           const std::vector<InstructionId>& after);

}  // namespace foretrain
