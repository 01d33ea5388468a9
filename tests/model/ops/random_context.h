// Random architectures, training set-ups and tensor-parallel plans for property tests. All sizes divide by
// tp.
#pragma once

#include <rapidcheck.h>

#include "model/ops/expand.h"

namespace foretrain {

inline ExpansionContext random_context() {
  ExpansionContext c;
  TransformerConfig& m = c.model;
  m.name = "random";
  m.layers = *rc::gen::inRange(1, 4);
  c.tp = *rc::gen::element(1, 1, 2, 4);
  m.kv_heads = *rc::gen::element(4, 8);
  m.heads = m.kv_heads * *rc::gen::inRange(1, 4);
  m.head_dim = *rc::gen::element(16, 64);
  m.hidden = m.heads * m.head_dim;
  m.ffn_hidden = 64 * *rc::gen::inRange(1, 9);
  m.vocab = 4 * *rc::gen::inRange(16, 500);
  m.max_positions = 128;
  m.norm = *rc::gen::element(NormKind::layer_norm, NormKind::rms_norm);
  m.activation = *rc::gen::element(Activation::gelu, Activation::swiglu);
  m.positions = *rc::gen::element(PositionKind::learned, PositionKind::rotary);
  m.tied_head = *rc::gen::arbitrary<bool>();
  m.qkv_bias = *rc::gen::arbitrary<bool>();
  m.attention_out_bias = *rc::gen::arbitrary<bool>();
  m.mlp_bias = *rc::gen::arbitrary<bool>();
  m.norm_bias = *rc::gen::arbitrary<bool>();
  m.head_bias = *rc::gen::arbitrary<bool>();
  m.fused_qkv = *rc::gen::arbitrary<bool>();
  m.sliding_window = *rc::gen::element(0, 0, 32);
  m.attention_dropout = *rc::gen::element(0.0, 0.1);
  m.residual_dropout = *rc::gen::element(0.0, 0.1);
  m.embedding_dropout = *rc::gen::element(0.0, 0.1);
  TrainingSpec& t = c.training;
  t.micro_batch_size = *rc::gen::inRange(1, 5);
  t.sequence_length = *rc::gen::element(64, 128);
  t.precision = *rc::gen::element(Precision::fp32, Precision::tf32, Precision::fp16_amp, Precision::bf16_amp,
                                  Precision::bf16);
  t.attention = *rc::gen::element(AttentionKernel::eager, AttentionKernel::flash);
  t.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  t.dropout = *rc::gen::arbitrary<bool>();
  c.tp_kind = *rc::gen::element(TensorParallelKind::column_gather, TensorParallelKind::megatron);
  c.sequence_parallel = c.tp_kind == TensorParallelKind::megatron && *rc::gen::arbitrary<bool>();
  return c;
}

inline constexpr BlockKind kBlockKinds[] = {BlockKind::embedding, BlockKind::layer, BlockKind::head};

inline std::int64_t first_block(const TransformerConfig& model, BlockKind kind) {
  return kind == BlockKind::embedding ? 0 : kind == BlockKind::layer ? 1 : model.layers + 1;
}

}  // namespace foretrain
