// Bytes saved for the backward against Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models" (2022): s sequence, b micro-batch, h hidden, a heads, t tensor-parallel ranks. Their
// layer is in 16 bit with dropout, GELU and 4h; ours must equal it but for what they leave out (see
// `left_out`).
#include <gtest/gtest.h>

#include "tests/model/ops/ledger.h"

namespace foretrain {
namespace {

struct Sizes {
  std::int64_t s, b, h, a;
};
constexpr Sizes kSizes[] = {{512, 4, 768, 12}, {1024, 1, 1024, 16}, {2048, 2, 2048, 32}};

ExpansionContext context_of(const Sizes& z, Precision precision) {
  ExpansionContext c;
  TransformerConfig& m = c.model;
  m.layers = 1;
  m.hidden = z.h;
  m.heads = m.kv_heads = z.a;
  m.head_dim = z.h / z.a;
  m.ffn_hidden = 4 * z.h;
  m.vocab = 1000;
  m.max_positions = z.s;
  m.attention_dropout = m.residual_dropout = m.embedding_dropout = 0.1;
  c.training.micro_batch_size = z.b;
  c.training.sequence_length = z.s;
  c.training.precision = precision;
  return c;
}

// The block's output stands for its input, which the block before it owns: both are 2sbh.
std::int64_t saved(const ExpansionContext& c) {
  const BlockExpansion block = expand(BlockKind::layer, c);
  Ledger ledger;
  ledger.run(block.forward, block.tensors);
  return ledger.bytes;
}

// Mean and reciprocal deviation of every row in fp32 for two norms, and the boolean mask of s x s.
std::int64_t left_out(const Sizes& z, std::int64_t ranks_sharing_rows, bool mask) {
  return 2 * 2 * 4 * z.s * z.b / ranks_sharing_rows + (mask ? z.s * z.s : 0);
}

TEST(SavedActivations, AreEquationOneWithoutParallelism) {  // sbh (34 + 5 as/h)
  for (const Sizes& z : kSizes) {
    const std::int64_t expected = 34 * z.s * z.b * z.h + 5 * z.a * z.s * z.s * z.b;
    EXPECT_EQ(saved(context_of(z, Precision::bf16)), expected + left_out(z, 1, true));
  }
}

TEST(SavedActivations, AreEquationTwoWithTensorParallelism) {  // sbh (10 + 24/t + 5 as/(ht))
  for (const Sizes& z : kSizes) {
    ExpansionContext c = context_of(z, Precision::bf16);
    c.tp = 4;
    const std::int64_t expected =
        10 * z.s * z.b * z.h + (24 * z.s * z.b * z.h + 5 * z.a * z.s * z.s * z.b) / 4;
    EXPECT_EQ(saved(c), expected + left_out(z, 1, true));
  }
}

TEST(SavedActivations, AreEquationFourWithSequenceParallelism) {  // sbh/t (34 + 5 as/h)
  for (const Sizes& z : kSizes) {
    ExpansionContext c = context_of(z, Precision::bf16);
    c.tp = 4;
    c.sequence_parallel = true;
    const std::int64_t expected = (34 * z.s * z.b * z.h + 5 * z.a * z.s * z.s * z.b) / 4;
    EXPECT_EQ(saved(c), expected + left_out(z, 4, true));
  }
}

TEST(SavedActivations, AreEquationSixWithSelectiveRecomputation) {  // 34 sbh/t
  for (const Sizes& z : kSizes) {
    for (const std::int32_t t : {1, 4}) {
      ExpansionContext c = context_of(z, Precision::bf16);
      c.tp = t;
      c.sequence_parallel = t > 1;
      c.training.recompute = Recompute::selective;
      EXPECT_EQ(saved(c), 34 * z.s * z.b * z.h / t + left_out(z, t, false));
    }
  }
}

TEST(SavedActivations, AreTheInputAloneWithFullRecomputation) {  // 2sbh
  for (const Sizes& z : kSizes) {
    ExpansionContext c = context_of(z, Precision::bf16);
    c.training.recompute = Recompute::full;
    EXPECT_EQ(saved(c), 2 * z.s * z.b * z.h);
  }
}

// Autocast differs from the paper: the residual stream that the norms save is fp32 (+4), softmax saves an
// fp32 output
// (+2 per score), and the cast weights, 12 h^2 of them, are kept for the input gradients.
TEST(SavedActivations, UnderAutocastAddTheFp32StreamSoftmaxAndCastWeights) {
  for (const Sizes& z : kSizes) {
    const std::int64_t expected = 38 * z.s * z.b * z.h + 7 * z.a * z.s * z.s * z.b + 2 * 12 * z.h * z.h;
    EXPECT_EQ(saved(context_of(z, Precision::fp16_amp)), expected + left_out(z, 1, true));
  }
}

// Each of three separate projections keeps its own cast of the fp32 input: 2 x 2 sbh more, and nothing in
// fp32.
TEST(SavedActivations, SeparateProjectionsCostTwoMoreCastsUnderAutocastOnly) {
  for (const Sizes& z : kSizes) {
    for (const Precision precision : {Precision::fp32, Precision::fp16_amp}) {
      ExpansionContext c = context_of(z, precision);
      const std::int64_t fused = saved(c);
      c.model.fused_qkv = false;
      EXPECT_EQ(saved(c) - fused, precision == Precision::fp32 ? 0 : 4 * z.s * z.b * z.h);
    }
  }
}

TEST(SavedActivations, FlashAttentionKeepsNoScores) {
  ExpansionContext c = context_of(kSizes[0], Precision::bf16);
  c.training.attention = AttentionKernel::flash;
  const Sizes& z = kSizes[0];
  // Instead of five bytes a score: the fp32 log-sum-exp of every query and head.
  EXPECT_EQ(saved(c), 34 * z.s * z.b * z.h + 4 * z.a * z.s * z.b + left_out(z, 1, false));
}

}  // namespace
}  // namespace foretrain
