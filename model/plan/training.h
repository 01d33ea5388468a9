// What is trained how: the numbers of a step that do not depend on the parallel plan.
#pragma once

#include <cstdint>

#include "model/arch/transformer.h"
#include "model/base/dtype.h"

namespace foretrain {

enum class Recompute : std::uint8_t { none, selective, full };
// adamw_foreach: PyTorch's default multi-tensor kernels, one per arithmetic step; adamw_fused: one pass.
enum class Optimizer : std::uint8_t { adamw_foreach, adamw_fused, sgd };

struct TrainingSpec {
  std::int64_t micro_batch_size = 1;  // sequences per micro-batch and data-parallel rank
  std::int64_t micro_batches =
      1;  // per step and data-parallel rank: gradient accumulation, or pipeline depth
  std::int64_t sequence_length = 512;
  Precision precision = Precision::fp32;
  AttentionKernel attention = AttentionKernel::eager;
  Optimizer optimizer = Optimizer::adamw_foreach;
  Recompute recompute = Recompute::none;
  bool dropout = true;              // false: the model's dropout rates are taken as zero
  bool clip_gradients = false;      // global norm over all shards, then scale
  bool log_loss_every_step = true;  // loss.item(): the host waits for the step's end
  std::int64_t tokens_per_micro_batch() const { return micro_batch_size * sequence_length; }
};

}  // namespace foretrain
