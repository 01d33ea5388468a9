// Op lists of what follows the backward: unscaling, gradient norm, clipping and the optimizer, with the
// kernels that torch.optim and torch.amp.GradScaler issue over one rank's parameters.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/dtype.h"
#include "model/base/units.h"
#include "model/ops/op.h"
#include "model/plan/training.h"

namespace foretrain {

// `elements`: parameters this rank updates; `tensors`: in how many tensors; `stored`: their dtype. With a
// 16-bit dtype the optimizer keeps an fp32 master copy (one more state) and writes the 16-bit parameter back.
std::vector<Op> optimizer_ops(const TrainingSpec& training, std::int64_t elements, std::int64_t tensors,
                              DType stored);
// Bytes of optimizer state: two fp32 moments (none for SGD), plus the master copy for 16-bit parameters.
Bytes optimizer_state_bytes(const TrainingSpec& training, std::int64_t elements, DType stored);
// Temporary memory at the peak of the step: the foreach form makes one tensor per parameter (the
// denominator).
Bytes optimizer_workspace_bytes(const TrainingSpec& training, std::int64_t elements, DType stored);

// GradScaler.unscale_: one pass over the gradients that also looks for inf and NaN.
std::vector<Op> unscale_ops(std::int64_t elements, std::int64_t tensors, DType gradient);
// torch.nn.utils.clip_grad_norm_: norms of all tensors, then the norm of those; and the scaling.
std::vector<Op> grad_norm_ops(std::int64_t elements, std::int64_t tensors, DType gradient);
std::vector<Op> clip_ops(std::int64_t elements, std::int64_t tensors, DType gradient);

// Launches that torch's multi-tensor kernels need: at most 320 chunks of 65,536 elements and `per_launch`
// tensors each (aten/src/ATen/native/cuda/MultiTensorApply.cuh; 110 for one list, fewer for more lists).
int multi_tensor_launches(std::int64_t elements, std::int64_t tensors, std::int64_t per_launch);

}  // namespace foretrain
