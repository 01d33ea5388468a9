// The sublayers that blocks are made of, each recording its forward on a tape and leaving its backward there.
// Token counts and widths are those of one tensor-parallel rank.
#pragma once

#include <string>

#include "model/ops/eager_tape.h"

namespace foretrain {

// Dtypes and sizes that every sublayer asks for.
struct LayerSizes {
  explicit LayerSizes(const ExpansionContext& context);
  std::int64_t batch, sequence, tokens;  // of the whole micro-batch
  std::int64_t shard_tokens;             // tokens of this rank where sequence parallelism splits them
  std::int64_t hidden, heads, kv_heads;  // heads of this rank
  std::int64_t head_dim, q_width, kv_width, ffn;  // widths of this rank
  std::int32_t tp;
  bool gather, megatron, sequence_parallel;
  DType compute, stream, norm;  // matmuls; residual stream; output of norms and softmax
};

enum class Split { none, column, row };  // how a Linear's weight is split over the tensor-parallel ranks

// Memory-bound op that reads and writes these bytes.
Op memory_op(OpRole role, std::string name, Bytes read, Bytes written, int launches = 1);

Value cast(EagerTape& tape, const Value& x, DType dtype, const std::string& name);
// LayerNorm or RMSNorm, as the model has it.
Value norm(EagerTape& tape, const LayerSizes& s, const Value& x, const std::string& name);
Value dropout(EagerTape& tape, const Value& x, double rate, const std::string& name);
// x + y in the wider dtype.
Value residual_add(EagerTape& tape, const Value& x, const Value& y, const std::string& name);
// y = x W^T + b; `in` and `out` are the unsplit widths. With split == column under column_gather the output
// is gathered whole again; under megatron it stays split. With row the caller reduces.
Value linear(EagerTape& tape, const LayerSizes& s, const Value& x, std::int64_t in, std::int64_t out,
             bool bias, Split split, const std::string& name);
// Forward: nothing (or, sequence parallel, all_gather of the tokens); backward: all_reduce (reduce_scatter).
Value enter_tensor_parallel(EagerTape& tape, const LayerSizes& s, const Value& x, const std::string& name);
// Forward: all_reduce (reduce_scatter); backward: nothing (all_gather).
Value leave_tensor_parallel(EagerTape& tape, const LayerSizes& s, const Value& x, const std::string& name);
// The bias of a row-split Linear, added after the reduction.
Value row_bias(EagerTape& tape, const Value& x, std::int64_t width, bool bias, const std::string& name);
void collective(EagerTape& tape, CollectiveKind kind, Bytes bytes, DType dtype, const std::string& name,
                std::int32_t uses, std::int32_t makes = kNoTensor);

// From the normed input to the projection's output.
Value attention(EagerTape& tape, const LayerSizes& s, const Value& x);
Value mlp(EagerTape& tape, const LayerSizes& s, const Value& x);

}  // namespace foretrain
