#include "model/arch/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace foretrain {
namespace {

using testing::HasSubstr;

// The parts of the published files that matter, and some that do not.
constexpr const char* kGpt2 = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
  "embd_pdrop": 0.1, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024,
  "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024, "resid_pdrop": 0.1, "vocab_size": 50257
})";
constexpr const char* kLlama3 = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "vocab_size": 128256
})";
constexpr const char* kQwen = R"({
  "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 896,
  "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2",
  "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2, "sliding_window": 32768,
  "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936
})";
constexpr const char* kMistral = R"({
  "architectures": ["MistralForCausalLM"], "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false,
  "vocab_size": 32000
})";

TransformerConfig imported(const std::string& text) {
  auto model = import_hugging_face(text, "folder/config.json");
  EXPECT_TRUE(model.has_value()) << (model ? "" : to_text(model.error()));
  return model ? *model : TransformerConfig{};
}

std::string without(std::string text, const std::string& key) {
  const std::size_t at = text.find('"' + key + '"');
  const std::size_t comma = text.find(',', at);
  return text.erase(at, comma + 1 - at);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

void expect_equal_but_for_the_name(TransformerConfig a, const char* preset) {
  ASSERT_NE(find_model(preset), nullptr);
  a.name = preset;
  EXPECT_EQ(a, *find_model(preset)) << preset;
}

TEST(HuggingFace, PublishedFilesGiveThePresets) {
  expect_equal_but_for_the_name(imported(kGpt2), "gpt2_xl");
  expect_equal_but_for_the_name(imported(kLlama3), "llama3_8b");
  expect_equal_but_for_the_name(imported(kQwen), "qwen2.5_0.5b");
  expect_equal_but_for_the_name(imported(kMistral), "mistral_7b");
}

TEST(HuggingFace, ImportedCountsAreThePublishedOnes) {
  EXPECT_EQ(parameter_count(imported(kGpt2)), 1'557'611'200);
  EXPECT_EQ(parameter_count(imported(kLlama3)), 8'030'261'248);
  EXPECT_EQ(parameter_count(imported(kQwen)), 494'032'768);
  EXPECT_EQ(parameter_count(imported(kMistral)), 7'241'732'096);
}

TEST(HuggingFace, NameIsThatOfTheFolder) { EXPECT_EQ(imported(kQwen).name, "folder"); }

TEST(HuggingFace, KeyValueHeadsDefaultToHeads) {
  EXPECT_EQ(imported(without(kLlama3, "num_key_value_heads")).kv_heads, 32);
}

TEST(HuggingFace, NullCountsAsAbsentForOptionalSizes) {
  EXPECT_EQ(
      imported(replaced(kLlama3, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": null")).kv_heads,
      32);
  EXPECT_EQ(
      imported(replaced(kMistral, "\"sliding_window\": 4096", "\"sliding_window\": null")).sliding_window, 0);
}

TEST(HuggingFace, SlidingWindowCountsOnlyWhereItIsUsed) {
  EXPECT_EQ(imported(kQwen).sliding_window, 0);
  EXPECT_EQ(imported(replaced(kQwen, "\"use_sliding_window\": false", "\"use_sliding_window\": true"))
                .sliding_window,
            32768);
  EXPECT_EQ(imported(kMistral).sliding_window, 4096);
}

TEST(HuggingFace, OwnHeadSizeIsKept) {
  const std::string text =
      replaced(kLlama3, "\"hidden_size\": 4096", "\"hidden_size\": 4096, \"head_dim\": 64");
  EXPECT_EQ(imported(text).head_dim, 64);
}

std::string errors_of(const std::string& text) {
  auto model = import_hugging_face(text, "config.json");
  EXPECT_FALSE(model.has_value());
  return model ? "" : to_text(model.error());
}

TEST(HuggingFace, OtherFamilyIsAnErrorThatNamesTheSupportedOnes) {
  const std::string errors = errors_of(replaced(kLlama3, "\"llama\"", "\"lama\""));
  EXPECT_THAT(errors, HasSubstr("config.json:"));
  for (const char* family : {"gpt2", "llama", "qwen2", "mistral"}) EXPECT_THAT(errors, HasSubstr(family));
}

TEST(HuggingFace, MissingKeysAreAllReported) {
  const std::string errors = errors_of(without(without(kLlama3, "hidden_size"), "num_hidden_layers"));
  EXPECT_THAT(errors, HasSubstr("hidden_size"));
  EXPECT_THAT(errors, HasSubstr("num_hidden_layers"));
}

TEST(HuggingFace, WithoutModelTypeThereIsOneErrorAboutIt) {
  EXPECT_THAT(errors_of(without(kLlama3, "model_type")), HasSubstr("model_type"));
}

TEST(HuggingFace, ContradictionIsALocatedError) {
  const std::string errors =
      errors_of(replaced(kLlama3, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 5"));
  EXPECT_THAT(errors, HasSubstr("config.json:4:"));  // the line of the key
  EXPECT_THAT(errors, HasSubstr("num_key_value_heads"));
}

TEST(HuggingFace, SizeThatDoesNotDivideIntoHeadsIsAnError) {
  EXPECT_THAT(errors_of(replaced(kGpt2, "\"n_head\": 25", "\"n_head\": 24")), HasSubstr("head"));
  EXPECT_THAT(errors_of(replaced(kLlama3, "\"num_attention_heads\": 32", "\"num_attention_heads\": 24")),
              HasSubstr("head"));
}

TEST(HuggingFace, WrongTypesAndRangesAreErrors) {
  for (const char* bad : {"\"4096\"", "-1", "0", "1.5", "1e30", "[]", "{}", "true", "null"}) {
    EXPECT_THAT(errors_of(replaced(kLlama3, "\"hidden_size\": 4096", std::string("\"hidden_size\": ") + bad)),
                HasSubstr("hidden_size"))
        << bad;
  }
}

TEST(HuggingFace, AnyTruncationIsAnErrorAndNeverACrash) {
  const std::string text = kQwen;
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_FALSE(import_hugging_face(text.substr(0, length), "config.json").has_value()) << length;
  }
}

}  // namespace
}  // namespace foretrain
