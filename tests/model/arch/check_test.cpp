#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "model/arch/transformer.h"

namespace foretrain {
namespace {

std::vector<std::string> paths(const TransformerConfig& model) {
  std::vector<std::string> found;
  for (const Error& error : check(model)) found.push_back(error.where.path);
  return found;
}

TEST(CheckTransformer, EverySizeMustBePositive) {
  const std::pair<const char*, std::int64_t TransformerConfig::*> sizes[] = {
      {"layers", &TransformerConfig::layers},     {"hidden", &TransformerConfig::hidden},
      {"heads", &TransformerConfig::heads},       {"kv_heads", &TransformerConfig::kv_heads},
      {"head_dim", &TransformerConfig::head_dim}, {"ffn_hidden", &TransformerConfig::ffn_hidden},
      {"vocab", &TransformerConfig::vocab},       {"max_positions", &TransformerConfig::max_positions},
  };
  for (const auto& [name, field] : sizes) {
    for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}}) {
      TransformerConfig m = *find_model("gpt2");
      m.*field = bad;
      EXPECT_THAT(paths(m), testing::Contains(name));
    }
  }
}

TEST(CheckTransformer, AllErrorsAreReportedAtOnce) {
  TransformerConfig m = *find_model("gpt2");
  m.layers = 0;
  m.vocab = -5;
  EXPECT_THAT(paths(m), testing::UnorderedElementsAre("layers", "vocab"));
}

TEST(CheckTransformer, KeyValueHeadsMustDivideHeads) {
  TransformerConfig m = *find_model("llama3_8b");
  m.kv_heads = 5;
  EXPECT_THAT(paths(m), testing::ElementsAre("kv_heads"));
}

TEST(CheckTransformer, HeadsOfAGptMustFillItsWidth) {
  TransformerConfig m = *find_model("gpt2");
  m.head_dim = 65;
  EXPECT_THAT(paths(m), testing::ElementsAre("head_dim"));
}

TEST(CheckTransformer, RotaryPositionsNeedAnEvenHead) {
  TransformerConfig m = *find_model("llama3_8b");
  m.head_dim = 63;
  EXPECT_THAT(paths(m), testing::ElementsAre("head_dim"));
}

TEST(CheckTransformer, DropoutRatesAreFromZeroToBelowOne) {
  for (const double bad : {-0.1, 1.0, std::nan("")}) {
    TransformerConfig m = *find_model("gpt2");
    m.attention_dropout = m.residual_dropout = m.embedding_dropout = bad;
    EXPECT_EQ(paths(m).size(), 3u) << bad;
  }
}

}  // namespace
}  // namespace foretrain
