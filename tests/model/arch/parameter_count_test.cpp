#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "model/arch/transformer.h"

namespace foretrain {
namespace {

// Published by the models' authors, or the element counts of their published checkpoints.
TEST(ParameterCount, EqualsThePublishedOnes) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"gpt2", 124'439'808},           {"gpt2_medium", 354'823'168},
      {"gpt2_large", 774'030'080},     {"gpt2_xl", 1'557'611'200},
      {"llama2_7b", 6'738'415'616},    {"llama2_13b", 13'015'864'320},
      {"llama2_70b", 68'976'648'192},  {"llama3_8b", 8'030'261'248},
      {"llama3_70b", 70'553'706'496},  {"llama3_405b", 405'853'388'800},
      {"qwen2.5_0.5b", 494'032'768},   {"qwen2.5_7b", 7'615'616'512},
      {"qwen2.5_72b", 72'706'203'648}, {"mistral_7b", 7'241'732'096},
  };
  for (const auto& [name, count] : published) {
    ASSERT_NE(find_model(name), nullptr) << name;
    EXPECT_EQ(parameter_count(*find_model(name)), count) << name;
  }
}

// 4 bytes x parameters = 500.9 MB, the gradient volume that the reference workload's authors quote.
TEST(ParameterCount, ReferenceGradientsAre500Point9Megabytes) {
  const std::int64_t count = parameter_count(*find_model("gpt_125m_reference"));
  EXPECT_EQ(count, 124'439'808 + 1024 * 768);  // GPT-2 with 1024 more positions
  EXPECT_NEAR(4e-6 * static_cast<double>(count), 500.9, 0.05);
}

// Table 2.1 of the GPT-3 paper rounds to what it calls the models.
TEST(ParameterCount, Gpt3ModelsAreAsLargeAsTheirNames) {
  const std::pair<const char*, double> named[] = {
      {"gpt3_1.3b", 1.3e9}, {"gpt3_6.7b", 6.7e9}, {"gpt3_13b", 13e9}, {"gpt3_175b", 175e9}};
  for (const auto& [name, count] : named) {
    EXPECT_NEAR(static_cast<double>(parameter_count(*find_model(name))), count, 0.02 * count) << name;
  }
}

// Counted from the papers' equations instead of the list of tensors.
std::int64_t by_formula(const TransformerConfig& m) {
  const std::int64_t d = m.hidden, q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim, f = m.ffn_hidden;
  const bool llama = m.activation == Activation::swiglu;
  const std::int64_t norm = m.norm == NormKind::layer_norm ? 2 * d : d;
  std::int64_t layer = 2 * norm + d * (q + 2 * kv) + q * d + (llama ? 3 : 2) * d * f;
  if (m.qkv_bias) layer += q + 2 * kv;
  if (m.attention_out_bias) layer += d;
  if (m.mlp_bias) layer += f + d;
  std::int64_t rest = m.vocab * d * (m.tied_head ? 1 : 2) + norm;
  if (m.positions == PositionKind::learned) rest += m.max_positions * d;
  return m.layers * layer + rest;
}

TEST(ParameterCount, EqualsTheClosedFormForEveryPreset) {
  for (const TransformerConfig& m : model_presets()) EXPECT_EQ(parameter_count(m), by_formula(m)) << m.name;
}

TEST(ParameterCount, NonEmbeddingParametersOfGpt2AreTwelveLayersHiddenSquared) {
  // Kaplan et al.: N = 12 L d^2, up to biases and norms (13 L d, and the last norm).
  const std::int64_t d = 768;
  EXPECT_EQ(non_embedding_parameter_count(*find_model("gpt2")), 12 * (12 * d * d + 13 * d) + 2 * d);
}

TEST(Parameters, BlocksListEveryTensorOnceUnderItsOwnName) {
  for (const TransformerConfig& m : model_presets()) {
    std::set<std::string> names;
    std::int64_t sum = 0;
    for (std::int64_t block = 0; block < block_count(m); ++block) {
      for (const Parameter& p : block_parameters(m, block)) {
        EXPECT_TRUE(names.insert(p.name).second) << m.name << " " << p.name;
        sum += p.tied_to_embedding ? 0 : p.elements();
      }
    }
    EXPECT_EQ(sum, parameter_count(m)) << m.name;
  }
}

TEST(Parameters, FusingQueryKeyAndValueChangesNoCount) {
  TransformerConfig m = *find_model("gpt2");
  const std::int64_t fused = parameter_count(m);
  m.fused_qkv = !m.fused_qkv;
  EXPECT_EQ(parameter_count(m), fused);
}

TEST(Presets, AreConsistentAndHaveDistinctNames) {
  std::set<std::string> names;
  for (const TransformerConfig& m : model_presets()) {
    EXPECT_TRUE(check(m).empty()) << m.name << ": " << to_text(check(m));
    EXPECT_TRUE(names.insert(m.name).second) << m.name;
    EXPECT_EQ(find_model(m.name), &m);
  }
  EXPECT_EQ(find_model("gpt5"), nullptr);
}

}  // namespace
}  // namespace foretrain
