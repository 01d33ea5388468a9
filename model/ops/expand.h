// Expands a block into its op lists, as PyTorch's eager execution issues them.
#pragma once

#include "model/arch/transformer.h"
#include "model/ops/op.h"
#include "model/plan/parallel_plan.h"
#include "model/plan/training.h"

namespace foretrain {

struct ExpansionContext {
  TransformerConfig model;
  TrainingSpec training;
  std::int32_t tp = 1;
  TensorParallelKind tp_kind = TensorParallelKind::megatron;
  bool sequence_parallel = false;
  bool first_micro_batch = true;  // autocast's cache of weight casts lives for one forward + backward
};

// Op lists of a block of this kind, per tensor-parallel rank, for one micro-batch. Shapes follow the
// module code of the family (see docs/design.md, "Op lists"); dtypes follow torch.autocast's lists.
BlockExpansion expand(BlockKind kind, const ExpansionContext& context);

// A parameter's elements held by one tensor-parallel rank.
std::int64_t local_elements(const Parameter& parameter, std::int32_t tp, TensorParallelKind kind);

// Model FLOPs of one optimizer step over `tokens` tokens: 6 N tokens (the MFU convention of the
// reference) and with the attention term 12 L H S tokens (PaLM, appendix B).
Flops model_flops_6n(const TransformerConfig& model, double tokens);
Flops model_flops_with_attention(const TransformerConfig& model, std::int64_t sequence_length, double tokens);

}  // namespace foretrain
