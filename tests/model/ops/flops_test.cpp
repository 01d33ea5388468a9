// FLOPs of the op lists against closed forms.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/model/ops/random_context.h"

namespace foretrain {
namespace {

double flops(const std::vector<Op>& ops) {
  double sum = 0;
  for (const Op& op : ops) {
    if (op.kind == OpKind::matmul || op.kind == OpKind::attention_forward ||
        op.kind == OpKind::attention_backward) {
      sum += op.flops.count();
    }
  }
  return sum;
}
double attention_flops(const std::vector<Op>& ops) {
  double sum = 0;
  for (const Op& op : ops) sum += op.role == OpRole::attention ? op.flops.count() : 0;
  return sum;
}
double matmul_weights(const TransformerConfig& model, std::int64_t block) {
  double sum = 0;
  for (const Parameter& p : block_parameters(model, block)) {
    if (p.is_matmul_weight) sum += static_cast<double>(p.elements());
  }
  return sum;
}
double tokens(const ExpansionContext& c) { return static_cast<double>(c.training.tokens_per_micro_batch()); }
// Scores and context: 2 x 2 x tokens x sequence x width.
double eager_attention(const ExpansionContext& c) {
  return 4 * tokens(c) * static_cast<double>(c.training.sequence_length * c.model.heads * c.model.head_dim);
}

RC_GTEST_PROP(Flops, ForwardIsTwoFlopsPerWeightAndTokenPlusAttention, ()) {
  ExpansionContext c = random_context();
  c.tp = 1;
  c.training.attention = AttentionKernel::eager;
  const double layer = 2 * matmul_weights(c.model, 1) * tokens(c) + eager_attention(c);
  RC_ASSERT(flops(expand(BlockKind::layer, c).forward) == layer);
  const double head = 2 * matmul_weights(c.model, c.model.layers + 1) * tokens(c);
  RC_ASSERT(flops(expand(BlockKind::head, c).forward) == head);
  RC_ASSERT(flops(expand(BlockKind::embedding, c).forward) == 0.0);
}

RC_GTEST_PROP(Flops, BackwardIsTwiceTheForward, ()) {
  ExpansionContext c = random_context();
  c.training.attention = AttentionKernel::eager;
  c.training.recompute = Recompute::none;
  for (const BlockKind kind : kBlockKinds) {
    const BlockExpansion block = expand(kind, c);
    RC_ASSERT(flops(block.backward) == 2 * flops(block.forward));
  }
}

RC_GTEST_PROP(Flops, SplitBackwardIsTheWholeBackward, ()) {
  const ExpansionContext c = random_context();
  for (const BlockKind kind : kBlockKinds) {
    const BlockExpansion block = expand(kind, c);
    RC_ASSERT(flops(block.backward_input) + flops(block.backward_weight) == flops(block.backward));
    RC_ASSERT(block.backward_input.size() + block.backward_weight.size() == block.backward.size());
  }
}

// The weight gradients of Linears are the weight part, and nothing else is.
RC_GTEST_PROP(Flops, WeightPartIsOneForwardOfTheLinears, ()) {
  ExpansionContext c = random_context();
  c.tp = 1;
  RC_ASSERT(flops(expand(BlockKind::layer, c).backward_weight) == 2 * matmul_weights(c.model, 1) * tokens(c));
}

RC_GTEST_PROP(Flops, FlashAttentionDoesTheCausalHalfAndTwoAndAHalfTimesThatBackward, ()) {
  ExpansionContext c = random_context();
  c.tp = 1;
  c.model.sliding_window = 0;
  c.training.attention = AttentionKernel::flash;
  c.training.recompute = Recompute::none;
  const BlockExpansion block = expand(BlockKind::layer, c);
  RC_ASSERT(attention_flops(block.forward) == eager_attention(c) / 2);
  RC_ASSERT(attention_flops(block.backward) == eager_attention(c) / 2 * 2.5);
}

TEST(Flops, SlidingWindowDoesTheBand) {
  ExpansionContext c;
  c.model = *find_model("mistral_7b");
  c.training.sequence_length = 8192;
  c.training.attention = AttentionKernel::flash;
  double pairs = 0;  // counted one query at a time
  for (std::int64_t q = 0; q < 8192; ++q) pairs += static_cast<double>(std::min<std::int64_t>(q + 1, 4096));
  const double expected = 4.0 * static_cast<double>(c.model.heads * c.model.head_dim) * pairs;
  EXPECT_NEAR(attention_flops(expand(BlockKind::layer, c).forward), expected, 1e-3 * expected);
}

RC_GTEST_PROP(Flops, MegatronRanksShareTheWorkEvenly, ()) {
  ExpansionContext c = random_context();
  c.tp_kind = TensorParallelKind::megatron;
  c.tp = 1;
  const double whole = flops(expand(BlockKind::layer, c).forward);
  const double head = flops(expand(BlockKind::head, c).forward);
  c.tp = 4;
  RC_ASSERT(4 * flops(expand(BlockKind::layer, c).forward) == whole);
  RC_ASSERT(4 * flops(expand(BlockKind::head, c).forward) == head);
}

RC_GTEST_PROP(Flops, ColumnGatherSharesTheLinearsOnly, ()) {
  ExpansionContext c = random_context();
  c.tp_kind = TensorParallelKind::column_gather;
  c.sequence_parallel = false;
  c.training.attention = AttentionKernel::eager;
  c.tp = 4;
  const double expected = 2 * matmul_weights(c.model, 1) * tokens(c) / 4 + eager_attention(c);
  RC_ASSERT(flops(expand(BlockKind::layer, c).forward) == expected);
  c.tp = 1;
  const double head = flops(expand(BlockKind::head, c).forward);
  c.tp = 4;
  RC_ASSERT(flops(expand(BlockKind::head, c).forward) == head);
}

RC_GTEST_PROP(Flops, FullRecomputationAddsOneForwardAndSelectiveTheAttention, ()) {
  ExpansionContext c = random_context();
  c.training.recompute = Recompute::none;
  const BlockExpansion plain = expand(BlockKind::layer, c);
  c.training.recompute = Recompute::full;
  const BlockExpansion full = expand(BlockKind::layer, c);
  RC_ASSERT(flops(full.recompute) == flops(plain.forward));
  RC_ASSERT(flops(full.backward) == flops(plain.backward));
  c.training.recompute = Recompute::selective;
  const BlockExpansion selective = expand(BlockKind::layer, c);
  RC_ASSERT(selective.recompute.empty());
  RC_ASSERT(flops(selective.backward) == flops(plain.backward) + attention_flops(plain.forward));
}

TEST(ModelFlops, SixNAndTheAttentionTermOfPaLM) {
  const TransformerConfig& m = *find_model("gpt2");
  EXPECT_DOUBLE_EQ(model_flops_6n(m, 1000).count(), 6.0 * 124'439'808 * 1000);
  EXPECT_DOUBLE_EQ(model_flops_with_attention(m, 512, 1000).count(),
                   (6.0 * 124'439'808 + 12.0 * 12 * 12 * 64 * 512) * 1000);
}

}  // namespace
}  // namespace foretrain
