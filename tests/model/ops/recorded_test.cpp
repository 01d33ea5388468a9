// The op lists against what PyTorch itself did: the same matmuls in the same order, the same traffic, the
// same memory.
#include "tests/model/ops/recorded.h"

#include <gtest/gtest.h>

#include "tests/model/ops/ledger.h"

namespace foretrain {
namespace {

struct Case {
  std::string file;
  bool llama = false, fused = false;
  Precision precision = Precision::fp32;
};

ExpansionContext context_of(const Case& c) {
  ExpansionContext context;
  TransformerConfig& m = context.model;
  m = *find_model(c.llama ? "llama3_8b" : c.fused ? "gpt2" : "gpt_125m_reference");
  m.layers = 2;
  if (c.llama) {
    m.hidden = 512;
    m.heads = 8;
    m.kv_heads = 2;
    m.head_dim = 64;
    m.ffn_hidden = 1376;
    m.vocab = 8000;
  }
  context.training.micro_batch_size = 4;
  context.training.sequence_length = c.llama ? 256 : 512;
  context.training.precision = c.precision;
  return context;
}

struct Matmul {
  std::int64_t batch, m, n, k;
  DType dtype;
  friend bool operator==(const Matmul&, const Matmul&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Matmul& x) {
    return out << x.batch << " x " << x.m << " " << x.n << " " << x.k << " " << name_of(x.dtype);
  }
};

DType dtype_of(const std::string& name) {
  return name == "float32" ? DType::fp32 : name == "float16" ? DType::fp16 : DType::bf16;
}

struct Traffic {
  std::vector<Matmul> matmuls;
  double bytes = 0;     // read and written by all other ops
  double launches = 0;  // of all other ops
};

Traffic recorded(const std::vector<RecordedOp>& ops, bool backward) {
  Traffic traffic;
  for (const RecordedOp& op : ops) {
    if (op.backward != backward) continue;
    if (op.is_matmul()) {
      const std::size_t first = op.name == "addmm" ? 1 : 0;
      const auto& a = op.inputs.at(first).shape;
      const auto& b = op.inputs.at(first + 1).shape;
      const bool batched = op.name == "bmm";
      traffic.matmuls.push_back(Matmul{batched ? a.at(0) : 1, a.at(batched ? 1 : 0), b.back(), a.back(),
                                       dtype_of(op.inputs.at(first).dtype)});
      continue;
    }
    // A lookup reads the rows it copies, not the table; nll_loss one value a row; it writes a gradient of
    // full size.
    const bool lookup = op.name == "embedding";
    const bool gather = lookup || op.name.starts_with("nll_loss");
    for (const RecordedTensor& t : op.inputs) traffic.bytes += gather ? 0.0 : static_cast<double>(t.bytes());
    for (const RecordedTensor& t : op.outputs)
      traffic.bytes += static_cast<double>(t.bytes()) * (lookup ? 2 : 1);
    // Zeros, then a copy into them.
    if (op.name == "slice_backward") traffic.bytes += static_cast<double>(op.inputs.at(0).bytes());
    traffic.launches += 1;
  }
  return traffic;
}

void add(const std::vector<Op>& ops, Traffic& traffic) {
  for (const Op& op : ops) {
    if (op.kind == OpKind::matmul) {
      traffic.matmuls.push_back(
          Matmul{op.matmul.batch, op.matmul.m, op.matmul.n, op.matmul.k, op.matmul.input});
    } else {
      traffic.bytes += static_cast<double>((op.read + op.written).count());
      traffic.launches += op.launches;
    }
  }
}

Traffic ours(const ExpansionContext& context, bool backward) {
  Traffic traffic;
  for (std::int64_t i = 0; i < block_count(context.model); ++i) {
    const std::int64_t block = backward ? block_count(context.model) - 1 - i : i;
    const BlockExpansion expansion = expand(block_kind(context.model, block), context);
    add(backward ? expansion.backward : expansion.forward, traffic);
  }
  return traffic;
}

// A block's output is kept until the next block's backward is over. PyTorch frees it where the next RMSNorm
// has cast it to fp32 and saved that copy.
std::int64_t outputs_kept(const ExpansionContext& context) {
  if (context.model.norm != NormKind::rms_norm || context.training.precision != Precision::bf16) return 0;
  return 2 * (context.model.layers + 1) * context.training.tokens_per_micro_batch() * context.model.hidden;
}

class RecordedByPyTorch : public testing::TestWithParam<Case> {};

TEST_P(RecordedByPyTorch, MatmulsAreTheSameInTheSameOrder) {
  const auto ops = read_recorded(GetParam().file);
  ASSERT_GT(ops.size(), 100u);
  for (const bool backward : {false, true}) {
    EXPECT_EQ(ours(context_of(GetParam()), backward).matmuls, recorded(ops, backward).matmuls)
        << (backward ? "backward" : "forward");
  }
}

TEST_P(RecordedByPyTorch, TrafficOfAllOtherOpsIsWithinTwoPerCent) {
  const auto ops = read_recorded(GetParam().file);
  for (const bool backward : {false, true}) {
    const double expected = recorded(ops, backward).bytes;
    EXPECT_NEAR(ours(context_of(GetParam()), backward).bytes, expected, 0.02 * expected)
        << (backward ? "backward" : "forward");
  }
}

// ATen ops of more than one kernel: layer_norm backward (2), embedding backward (2), nll_loss backward
// (2).
TEST_P(RecordedByPyTorch, LaunchesAreThoseOfTheOps) {
  const auto ops = read_recorded(GetParam().file);
  EXPECT_NEAR(ours(context_of(GetParam()), false).launches, recorded(ops, false).launches, 2);
  double extra = 0;
  for (const RecordedOp& op : ops) {
    if (op.name == "native_layer_norm_backward" || op.name == "nll_loss_backward") extra += 1;
    if (op.name == "slice_backward") extra += 1;
    if (op.name == "embedding_dense_backward") extra += 1;
  }
  EXPECT_NEAR(ours(context_of(GetParam()), true).launches, recorded(ops, true).launches + extra, 3);
}

TEST_P(RecordedByPyTorch, MemoryAliveAfterTheForwardIsTheSame) {
  const auto ops = read_recorded(GetParam().file);
  const auto first = std::find_if(ops.begin(), ops.end(), [](const RecordedOp& op) { return op.backward; });
  // Scalars, the positions' indices, and what the row counts.
  const ExpansionContext context = context_of(GetParam());
  const std::int64_t measured = first->alive_bytes - 4 + outputs_kept(context);
  EXPECT_NEAR(static_cast<double>(run_model(context).after_forward), static_cast<double>(measured), 8192);
}

TEST_P(RecordedByPyTorch, PeakOfTheBackwardIsTheSame) {
  const auto ops = read_recorded(GetParam().file);
  std::int64_t peak = 0;
  for (const RecordedOp& op : ops) peak = op.backward ? std::max(peak, op.alive_bytes) : peak;
  const ExpansionContext context = context_of(GetParam());
  peak += outputs_kept(context);
  EXPECT_NEAR(static_cast<double>(run_model(context).peak_of_backward), static_cast<double>(peak), 8192);
}

TEST_P(RecordedByPyTorch, PeakOfTheForwardIsTheSame) {
  const auto ops = read_recorded(GetParam().file);
  std::int64_t peak = 0;
  for (const RecordedOp& op : ops) peak = op.backward ? peak : std::max(peak, op.alive_bytes);
  const ExpansionContext context = context_of(GetParam());
  peak +=
      outputs_kept(context) / (context.model.layers + 1) * context.model.layers;  // the last is a variable's
  // The casts of biases, which autocast's cache keeps until the forward is over, and scalars.
  const double small = 65536;
  EXPECT_NEAR(static_cast<double>(run_model(context).peak_of_forward), static_cast<double>(peak), small);
}

// Up to the end of the first layer, where a pipeline stage that ends there has its peak.
TEST_P(RecordedByPyTorch, PeakOfTheFirstLayersForwardIsTheSame) {
  const auto ops = read_recorded(GetParam().file);
  std::int64_t peak = 0;
  int norms = 0;
  for (const RecordedOp& op : ops) {
    if (op.name == "native_layer_norm" || op.name == "pow") ++norms;
    if (norms > 2) break;  // the second layer
    peak = std::max(peak, op.alive_bytes);
  }
  const ExpansionContext context = context_of(GetParam());
  const BlockExpansion embedding = expand(BlockKind::embedding, context);
  const BlockExpansion layer = expand(BlockKind::layer, context);
  Ledger first, second;
  first.run(embedding.forward, embedding.tensors);
  second.run(layer.forward, layer.tensors);
  const double kept =
      outputs_kept(context) > 0 ? 2.0 * static_cast<double>(layer.boundary_bytes.count()) : 0.0;
  EXPECT_NEAR(static_cast<double>(first.bytes + second.peak), static_cast<double>(peak), 65536 + kept);
}

INSTANTIATE_TEST_SUITE_P(
    All, RecordedByPyTorch,
    testing::Values(Case{"reference_fp32"}, Case{"reference_fp16_amp", false, false, Precision::fp16_amp},
                    Case{"reference_bf16_amp", false, false, Precision::bf16_amp},
                    Case{"gpt2_fp32", false, true}, Case{"gpt2_fp16_amp", false, true, Precision::fp16_amp},
                    Case{"gpt2_bf16", false, true, Precision::bf16}, Case{"llama_fp32", true},
                    Case{"llama_bf16_amp", true, false, Precision::bf16_amp},
                    Case{"llama_bf16", true, false, Precision::bf16}),
    [](const auto& test) { return test.param.file; });

}  // namespace
}  // namespace foretrain
