#include "model/arch/hugging_face.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "model/base/text.h"
#include "model/json/parse.h"
#include "model/json/reader.h"

namespace foretrain {
namespace {

constexpr Bounds<std::int64_t> kSize{1, std::int64_t{1} << 24};

// Reads the first of the keys that is there; an error names the first when none is.
void read_size(ObjectReader& reader, std::initializer_list<std::string_view> keys, std::int64_t& into) {
  for (const std::string_view key : keys) {
    if (reader.has(key)) {
      reader.required(key, into, kSize);
      return;
    }
  }
  reader.required(*keys.begin(), into, kSize);
}

void read_optional_size(ObjectReader& reader, std::string_view key, std::int64_t& into) {
  const JsonValue* value = reader.optional_value(key);
  if (value != nullptr && !value->is_null()) reader.required(key, into, kSize);
}

void read_gpt2(ObjectReader& reader, TransformerConfig& m) {
  read_size(reader, {"n_layer", "num_hidden_layers"}, m.layers);
  read_size(reader, {"n_embd", "hidden_size"}, m.hidden);
  read_size(reader, {"n_head", "num_attention_heads"}, m.heads);
  read_size(reader, {"n_positions", "n_ctx", "max_position_embeddings"}, m.max_positions);
  m.ffn_hidden = 4 * m.hidden;
  read_optional_size(reader, "n_inner", m.ffn_hidden);
  m.kv_heads = m.heads;
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  m.attention_dropout = m.residual_dropout = m.embedding_dropout = 0.1;  // the family's defaults
  reader.optional("attn_pdrop", m.attention_dropout, {0.0, 1.0});
  reader.optional("resid_pdrop", m.residual_dropout, {0.0, 1.0});
  reader.optional("embd_pdrop", m.embedding_dropout, {0.0, 1.0});
  m.tied_head = true;
  reader.optional("tie_word_embeddings", m.tied_head);
}

void read_llama(ObjectReader& reader, const std::string& family, TransformerConfig& m) {
  m.norm = NormKind::rms_norm;
  m.activation = Activation::swiglu;
  m.positions = PositionKind::rotary;
  m.tied_head = m.qkv_bias = m.attention_out_bias = m.mlp_bias = m.norm_bias = m.fused_qkv = false;
  read_size(reader, {"num_hidden_layers"}, m.layers);
  read_size(reader, {"hidden_size"}, m.hidden);
  read_size(reader, {"num_attention_heads"}, m.heads);
  read_size(reader, {"intermediate_size"}, m.ffn_hidden);
  read_size(reader, {"max_position_embeddings"}, m.max_positions);
  m.kv_heads = m.heads;
  read_optional_size(reader, "num_key_value_heads", m.kv_heads);
  m.head_dim = m.heads > 0 ? m.hidden / m.heads : 0;
  if (m.heads > 0 && m.hidden % m.heads != 0 && !reader.has("head_dim")) {
    reader.error("num_attention_heads",
                 fmt::format("is {}, which does not divide hidden_size = {}", m.heads, m.hidden),
                 "give head_dim, or heads that divide hidden_size");
  }
  read_optional_size(reader, "head_dim", m.head_dim);
  reader.optional("attention_dropout", m.attention_dropout, {0.0, 1.0});
  reader.optional("tie_word_embeddings", m.tied_head);
  if (family == "qwen2") m.qkv_bias = true;
  bool bias = false;
  if (family == "llama" && reader.optional("attention_bias", bias)) m.qkv_bias = m.attention_out_bias = bias;
  if (family == "llama") reader.optional("mlp_bias", m.mlp_bias);
  bool windowed = family == "mistral";
  if (family == "qwen2") reader.optional("use_sliding_window", windowed);
  if (windowed) read_optional_size(reader, "sliding_window", m.sliding_window);
}

// The key of the file that a field of TransformerConfig was read from.
std::string_view key_of(std::string_view field, const ObjectReader& reader) {
  static constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"layers", "num_hidden_layers"},
      {"layers", "n_layer"},
      {"hidden", "hidden_size"},
      {"hidden", "n_embd"},
      {"heads", "n_head"},
      {"heads", "num_attention_heads"},
      {"kv_heads", "num_key_value_heads"},
      {"head_dim", "head_dim"},
      {"head_dim", "n_head"},
      {"head_dim", "num_attention_heads"},
      {"ffn_hidden", "intermediate_size"},
      {"ffn_hidden", "n_inner"},
      {"vocab", "vocab_size"},
      {"max_positions", "max_position_embeddings"},
      {"attention_dropout", "attn_pdrop"},
      {"residual_dropout", "resid_pdrop"},
      {"embedding_dropout", "embd_pdrop"}};
  for (const auto& [name, key] : kKeys) {
    if (name == field && reader.has(key)) return key;
  }
  return field;
}

}  // namespace

Expected<TransformerConfig> import_hugging_face(const std::string& text, const std::string& file) {
  auto document = parse_json(text, file);
  if (!document) return fail(std::move(document.error()));
  Errors errors;
  ObjectReader reader(*document, errors);
  TransformerConfig model;
  std::string family;
  if (!reader.required("model_type", family)) return fail(std::move(errors));
  static constexpr std::string_view kFamilies[] = {"gpt2", "llama", "qwen2", "mistral"};
  if (family == "gpt2") {
    read_gpt2(reader, model);
  } else if (family == "llama" || family == "qwen2" || family == "mistral") {
    read_llama(reader, family, model);
  } else {
    reader.error("model_type",
                 fmt::format("is {}; expected gpt2, llama, qwen2 or mistral", in_quotes(family)),
                 did_you_mean(family, kFamilies, "families"));
    return fail(std::move(errors));
  }
  read_size(reader, {"vocab_size"}, model.vocab);
  model.name = std::filesystem::path(file).parent_path().filename().string();
  if (model.name.empty()) model.name = family;
  if (errors.empty()) {
    for (const Error& error : check(model)) {
      reader.error(key_of(error.where.path, reader), error.message, error.hint);
    }
  }
  if (!errors.empty()) return fail(std::move(errors));
  return model;
}

}  // namespace foretrain
