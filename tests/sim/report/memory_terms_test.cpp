// Memory of two large plans, term by term, against sums written out from the models' published dimensions.
#include <gtest/gtest.h>

#include "model/hardware/cluster.h"
#include "sim/report/report.h"

namespace foretrain {
namespace {

constexpr double kGib = 1073741824.0;

double gib(const std::array<Bytes, 7>& classes, MemoryClass which) {
  return classes[static_cast<std::size_t>(which)].gib();
}

TrainingSpec large_training(std::int64_t sequence, std::int64_t micro_batches) {
  TrainingSpec training;
  training.sequence_length = sequence;
  training.micro_batches = micro_batches;
  training.precision = Precision::bf16;
  training.attention = AttentionKernel::flash;
  training.optimizer = Optimizer::adamw_fused;
  training.recompute = Recompute::full;
  training.clip_gradients = true;
  return training;
}

TEST(MemoryTerms, QwenSevenBillionFullyShardedOverTwoNodesOfFour) {
  ClusterSpec spec = *find_cluster("8xa100_80_sxm");
  spec.nodes = 2;
  spec.gpus_per_node = 4;
  spec.nics_per_node = 4;
  ParallelPlan plan;
  plan.fsdp = 8;
  plan.fsdp_options.parameter_payload = DType::bf16;
  plan.fsdp_options.gradient_payload = DType::bf16;
  const auto p =
      predict(*find_model("qwen2.5_7b"), large_training(2048, 1), plan, build(spec), default_profile());
  ASSERT_TRUE(p.has_value()) << to_text(p.error());
  const MemoryReport& m = p->memory[0];

  const double h = 3584, kv = 4 * 128, ffn = 18944, vocab = 152064;
  const double layer = (h * h + h) + 2 * (h * kv + kv) + h * h + 3 * h * ffn + 2 * h;
  const double root = 2 * vocab * h + h;  // embedding, head and last norm: the outermost unit
  const double all = 28 * layer + root;
  const double shard = all / 8;
  // bf16 shard, and fp32 master copy and two moments.
  EXPECT_NEAR(gib(m.peak_of_class, MemoryClass::optimizer), 12 * shard / kGib, 0.1);
  // The root unit stays gathered while two blocks (the current and the prefetched one) come and go.
  const double gathered = (2 * shard + 2 * root + 2 * 2 * layer) / kGib;
  EXPECT_NEAR(gib(m.peak_of_class, MemoryClass::parameters), gathered, 0.05);
  // Gradients at most: all shards, the root's gradients and their flattened copy, and a block on its way.
  const double gradients = (2 * shard + 2 * 2 * root) / kGib;
  EXPECT_GE(gib(m.peak_of_class, MemoryClass::gradients), gradients - 2 * root / 8 / kGib - 0.01);
  EXPECT_LE(gib(m.peak_of_class, MemoryClass::gradients), gradients + 2 * 2 * layer / kGib + 0.01);
  EXPECT_TRUE(p->fits);
  EXPECT_LT(p->peak_memory_gib.value, 24);
}

TEST(MemoryTerms, LlamaSeventyBillionOnSixtyFourGpus) {
  ClusterSpec spec = *find_cluster("8xa100_80_sxm");
  spec.nodes = 8;
  ParallelPlan plan;
  plan.dp = 2;
  plan.tp = 8;
  plan.pp = 4;
  plan.zero_stage = 1;
  plan.sequence_parallel = true;
  const auto p =
      predict(*find_model("llama3_70b"), large_training(4096, 16), plan, build(spec), default_profile());
  ASSERT_TRUE(p.has_value()) << to_text(p.error());
  ASSERT_EQ(p->memory.size(), 4u);

  const double h = 8192, kv = 8 * 128, ffn = 28672, vocab = 128256;
  const double layer = (2 * h * h + 2 * h * kv + 3 * h * ffn) / 8 + 2 * h;  // norms on every rank
  const double embedding = vocab * h / 8;
  const std::array<double, 4> parameters{20 * layer + embedding, 20 * layer, 20 * layer,
                                         20 * layer + embedding + h};
  for (std::size_t s = 0; s < 4; ++s) {
    const MemoryReport& m = p->memory[s];
    EXPECT_NEAR(gib(m.peak_of_class, MemoryClass::parameters), 2 * parameters[s] / kGib, 0.01) << s;
    // ZeRO-1 over two replicas: half of the master copy and the moments.
    EXPECT_NEAR(gib(m.peak_of_class, MemoryClass::optimizer), 12 * parameters[s] / 2 / kGib, 0.2) << s;
    // bf16 gradients and the buckets that are reduced.
    EXPECT_NEAR(gib(m.peak_of_class, MemoryClass::gradients), 2 * 2 * parameters[s] / kGib, 0.02) << s;
    // With full recomputation a layer keeps its input, 4096 / 8 tokens of 8192 in bf16, per micro-batch in
    // flight.
    const double in_flight = static_cast<double>(4 - s);
    const double inputs = in_flight * 20 * (4096.0 / 8 * h * 2) / kGib;
    EXPECT_EQ(m.micro_batches_in_flight, 4 - static_cast<std::int32_t>(s));
    EXPECT_GE(gib(m.peak_of_class, MemoryClass::activations), inputs - 0.05) << s;
  }
  // The last stage holds the logits' chain in addition; the others one layer's recomputed activations.
  EXPECT_LE(gib(p->memory[0].peak_of_class, MemoryClass::activations),
            4 * 20 * (4096.0 / 8 * h * 2) / kGib + 0.5);
  EXPECT_TRUE(p->fits);
}

}  // namespace
}  // namespace foretrain
