// The collectives inside a layer: how many, of how many bytes, in which dtype.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/model/ops/random_context.h"

namespace foretrain {
namespace {

std::vector<CollectiveShape> collectives(const std::vector<Op>& ops) {
  std::vector<CollectiveShape> found;
  for (const Op& op : ops) {
    if (op.kind == OpKind::collective) found.push_back(op.collective);
  }
  return found;
}
CollectiveShape shape(CollectiveKind kind, std::int64_t elements, DType dtype) {
  return CollectiveShape{kind, mesh_dims(MeshDim::tp), Bytes(elements * size_of(dtype)), dtype};
}

// The reference workload at B = 4, S = 512 on two ranks, under AMP.
ExpansionContext reference(bool fused) {
  ExpansionContext c;
  c.model = *find_model("gpt_125m_reference");
  c.model.fused_qkv = fused;
  c.training.micro_batch_size = 4;
  c.training.sequence_length = 512;
  c.training.precision = Precision::fp16_amp;
  c.tp = 2;
  c.tp_kind = TensorParallelKind::column_gather;
  return c;
}
constexpr std::int64_t kWidth = 4 * 512 * 768;  // tokens x hidden

TEST(ColumnGather, FusedLayerGathersFourOutputsAndReducesFourInputGradients) {
  const BlockExpansion layer = expand(BlockKind::layer, reference(true));
  using enum CollectiveKind;
  const std::vector<CollectiveShape> forward = {
      shape(all_gather, 3 * kWidth, DType::fp16), shape(all_gather, kWidth, DType::fp16),
      shape(all_gather, 4 * kWidth, DType::fp16), shape(all_gather, kWidth, DType::fp16)};
  EXPECT_EQ(collectives(layer.forward), forward);
  // LayerNorm's output is fp32 under autocast, and so are the input gradients of fc1 and qkv.
  const std::vector<CollectiveShape> backward = {
      shape(all_reduce, 4 * kWidth, DType::fp16), shape(all_reduce, kWidth, DType::fp32),
      shape(all_reduce, kWidth, DType::fp16), shape(all_reduce, kWidth, DType::fp32)};
  EXPECT_EQ(collectives(layer.backward), backward);
}

TEST(ColumnGather, SeparateProjectionsMakeItSixWithTheSameBytesForward) {
  const BlockExpansion layer = expand(BlockKind::layer, reference(false));
  const BlockExpansion fused = expand(BlockKind::layer, reference(true));
  EXPECT_EQ(collectives(layer.forward).size(), 6u);
  EXPECT_EQ(collectives(layer.backward).size(), 6u);
  const auto bytes = [](const std::vector<Op>& ops) {
    std::int64_t sum = 0;
    for (const CollectiveShape& c : collectives(ops)) sum += c.bytes.count();
    return sum;
  };
  EXPECT_EQ(bytes(layer.forward), bytes(fused.forward));
  EXPECT_EQ(bytes(layer.backward), bytes(fused.backward) + 2 * kWidth * 4);
}

// torch.distributed.all_gather into a list: flat buffer, copies into the list, torch.cat; all of full size.
TEST(ColumnGather, EveryGatherIsFollowedByTwoCopiesOfTheWholeOutput) {
  const BlockExpansion layer = expand(BlockKind::layer, reference(true));
  for (std::size_t i = 0; i < layer.forward.size(); ++i) {
    if (layer.forward[i].kind != OpKind::collective) continue;
    for (const std::size_t next : {i + 1, i + 2}) {
      EXPECT_EQ(layer.forward.at(next).role, OpRole::copy);
      EXPECT_EQ(layer.forward.at(next).read, layer.forward[i].collective.bytes);
      EXPECT_EQ(layer.forward.at(next).written, layer.forward[i].collective.bytes);
    }
  }
}

TEST(ColumnGather, EmbeddingAndHeadAreWholeOnEveryRank) {
  for (const BlockKind kind : {BlockKind::embedding, BlockKind::head}) {
    const BlockExpansion block = expand(kind, reference(true));
    EXPECT_TRUE(collectives(block.forward).empty());
    EXPECT_TRUE(collectives(block.backward).empty());
  }
}

RC_GTEST_PROP(Megatron, LayerReducesTwiceForwardAndTwiceBackward, ()) {
  ExpansionContext c = random_context();
  c.tp = 4;
  c.tp_kind = TensorParallelKind::megatron;
  c.sequence_parallel = false;
  c.training.recompute = Recompute::none;
  const BlockExpansion layer = expand(BlockKind::layer, c);
  const CollectiveShape one =
      shape(CollectiveKind::all_reduce, c.training.tokens_per_micro_batch() * c.model.hidden,
            compute_dtype(c.training.precision));
  RC_ASSERT((collectives(layer.forward) == std::vector<CollectiveShape>{one, one}));
  RC_ASSERT((collectives(layer.backward) == std::vector<CollectiveShape>{one, one}));
}

// An all_reduce is a reduce_scatter and an all_gather of as many bytes. The backward gathers the two inputs
// once more for the weight gradients instead of keeping them.
RC_GTEST_PROP(Megatron, SequenceParallelismReplacesEveryAllReduceByAPair, ()) {
  ExpansionContext c = random_context();
  c.tp = 4;
  c.tp_kind = TensorParallelKind::megatron;
  c.sequence_parallel = true;
  c.training.recompute = Recompute::none;
  const BlockExpansion layer = expand(BlockKind::layer, c);
  const std::int64_t elements = c.training.tokens_per_micro_batch() * c.model.hidden;
  const DType dtype = compute_dtype(c.training.precision);
  const CollectiveShape gather = shape(CollectiveKind::all_gather, elements, dtype);
  const CollectiveShape scatter = shape(CollectiveKind::reduce_scatter, elements, dtype);
  RC_ASSERT((collectives(layer.forward) == std::vector<CollectiveShape>{gather, scatter, gather, scatter}));
  std::vector<CollectiveShape> backward = collectives(layer.backward);
  RC_ASSERT(std::count(backward.begin(), backward.end(), gather) == 4);
  RC_ASSERT(std::count(backward.begin(), backward.end(), scatter) == 2);
  RC_ASSERT(backward.size() == 6u);
  RC_ASSERT(layer.boundary_bytes == Bytes(elements / 4 * size_of(parameter_dtype(c.training.precision))));
}

TEST(Megatron, LossExchangesThreeNumbersARow) {
  ExpansionContext c = reference(true);
  c.tp_kind = TensorParallelKind::megatron;
  const auto head = collectives(expand(BlockKind::head, c).forward);
  const CollectiveShape rows = shape(CollectiveKind::all_reduce, 4 * 512, DType::fp32);
  EXPECT_EQ(std::count(head.begin(), head.end(), rows), 3);
}

RC_GTEST_PROP(TensorParallel, OneRankHasNoCollectives, ()) {
  ExpansionContext c = random_context();
  c.tp = 1;
  for (const BlockKind kind : kBlockKinds) {
    const BlockExpansion block = expand(kind, c);
    RC_ASSERT(collectives(block.forward).empty());
    RC_ASSERT(collectives(block.backward).empty());
  }
}

// Shards of a split parameter add up to it; whole ones are on every rank.
RC_GTEST_PROP(TensorParallel, LocalElementsAddUp, ()) {
  const ExpansionContext c = random_context();
  for (const BlockKind kind : kBlockKinds) {
    for (const Parameter& p : block_parameters(c.model, first_block(c.model, kind))) {
      const std::int64_t local = local_elements(p, c.tp, TensorParallelKind::megatron);
      if (p.megatron_split == TensorSplit::replicated) {
        RC_ASSERT(local == p.elements());
      } else {
        RC_ASSERT(local * c.tp == p.elements());
      }
    }
  }
}

TEST(TensorParallel, MoreRanksThanKeyValueHeadsShareThem) {
  const TransformerConfig& m = *find_model("llama3_8b");  // 32 heads, 8 key-value heads of 128
  for (const Parameter& p : block_parameters(m, 1)) {
    const std::int64_t local = local_elements(p, 16, TensorParallelKind::megatron);
    if (p.name.ends_with("attn.k.weight")) {
      EXPECT_EQ(local, 128 * 4096);
    }
    if (p.name.ends_with("attn.q.weight")) {
      EXPECT_EQ(local, 2 * 128 * 4096);
    }
  }
  ExpansionContext c;
  c.model = m;
  c.tp = 16;
  for (const Op& op : expand(BlockKind::layer, c).forward) {
    if (op.name == "attn.k") {
      EXPECT_EQ(op.matmul.n, 128);
    }
  }
}

}  // namespace
}  // namespace foretrain
