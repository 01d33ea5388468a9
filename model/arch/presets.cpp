// Built-in models. Sizes from the papers and the published config.json files; parameter counts are tested
// against the published ones.
#include <array>

#include "model/arch/transformer.h"
#include "model/base/text.h"

namespace foretrain {
namespace {

TransformerConfig gpt(std::string name, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                      std::int64_t positions, double dropout, std::int64_t vocab = 50257) {
  TransformerConfig m;
  m.name = std::move(name);
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.ffn_hidden = 4 * hidden;
  m.vocab = vocab;
  m.max_positions = positions;
  m.attention_dropout = m.residual_dropout = m.embedding_dropout = dropout;
  return m;
}

TransformerConfig reference() {
  TransformerConfig m = gpt("gpt_125m_reference", 12, 768, 12, 2048, 0.1);
  m.causal_mask_buffers = true;
  // Its memory under AMP shows that q, k and v are Linears of their own: each casts the fp32 LayerNorm
  // output.
  m.fused_qkv = false;
  return m;
}

struct LlamaSizes {
  std::int64_t layers, hidden, heads, kv_heads, ffn_hidden, vocab, positions;
};

TransformerConfig llama(std::string name, const LlamaSizes& s) {
  TransformerConfig m;
  m.name = std::move(name);
  m.layers = s.layers;
  m.hidden = s.hidden;
  m.heads = s.heads;
  m.kv_heads = s.kv_heads;
  m.head_dim = s.hidden / s.heads;
  m.ffn_hidden = s.ffn_hidden;
  m.vocab = s.vocab;
  m.max_positions = s.positions;
  m.norm = NormKind::rms_norm;
  m.activation = Activation::swiglu;
  m.positions = PositionKind::rotary;
  m.tied_head = m.qkv_bias = m.attention_out_bias = m.mlp_bias = m.norm_bias = m.fused_qkv = false;
  return m;
}

TransformerConfig qwen(std::string name, const LlamaSizes& sizes, bool tied) {
  TransformerConfig m = llama(std::move(name), sizes);
  m.qkv_bias = true;
  m.tied_head = tied;
  return m;
}

TransformerConfig mistral() {
  TransformerConfig m = llama("mistral_7b", {32, 4096, 32, 8, 14336, 32000, 32768});
  m.sliding_window = 4096;
  return m;
}

const std::vector<TransformerConfig>& presets() {
  static const std::vector<TransformerConfig> list = {
      gpt("tiny", 4, 128, 4, 256, 0.0, 256),
      reference(),
      gpt("gpt2", 12, 768, 12, 1024, 0.1),
      gpt("gpt2_medium", 24, 1024, 16, 1024, 0.1),
      gpt("gpt2_large", 36, 1280, 20, 1024, 0.1),
      gpt("gpt2_xl", 48, 1600, 25, 1024, 0.1),
      gpt("gpt3_1.3b", 24, 2048, 16, 2048, 0.0),
      gpt("gpt3_6.7b", 32, 4096, 32, 2048, 0.0),
      gpt("gpt3_13b", 40, 5120, 40, 2048, 0.0),
      gpt("gpt3_175b", 96, 12288, 96, 2048, 0.0),
      llama("llama2_7b", {32, 4096, 32, 32, 11008, 32000, 4096}),
      llama("llama2_13b", {40, 5120, 40, 40, 13824, 32000, 4096}),
      llama("llama2_70b", {80, 8192, 64, 8, 28672, 32000, 4096}),
      llama("llama3_8b", {32, 4096, 32, 8, 14336, 128256, 8192}),
      llama("llama3_70b", {80, 8192, 64, 8, 28672, 128256, 8192}),
      llama("llama3_405b", {126, 16384, 128, 8, 53248, 128256, 8192}),
      qwen("qwen2.5_0.5b", {24, 896, 14, 2, 4864, 151936, 32768}, true),
      qwen("qwen2.5_7b", {28, 3584, 28, 4, 18944, 152064, 131072}, false),
      qwen("qwen2.5_72b", {80, 8192, 64, 8, 29568, 152064, 131072}, false),
      mistral(),
  };
  return list;
}

}  // namespace

std::span<const TransformerConfig> model_presets() { return presets(); }

const TransformerConfig* find_model(std::string_view name) {
  for (const TransformerConfig& preset : presets()) {
    if (equals_ignoring_case(preset.name, name)) return &preset;
  }
  return nullptr;
}

}  // namespace foretrain
