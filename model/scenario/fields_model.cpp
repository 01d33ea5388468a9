// The section model: a preset, a Hugging Face config.json or the numbers themselves, and what to change in
// them.
#include <filesystem>

#include "model/arch/hugging_face.h"
#include "model/base/file.h"
#include "model/base/text.h"
#include "model/scenario/fields.h"

namespace foretrain {
namespace {

constexpr EnumName<NormKind> kNorms[] = {{"layer_norm", NormKind::layer_norm},
                                         {"rms_norm", NormKind::rms_norm}};
constexpr EnumName<Activation> kActivations[] = {{"gelu", Activation::gelu}, {"swiglu", Activation::swiglu}};
constexpr EnumName<PositionKind> kPositions[] = {{"learned", PositionKind::learned},
                                                 {"rotary", PositionKind::rotary}};
constexpr std::int64_t kMost = std::int64_t{1} << 24;

using M = TransformerConfig;
constexpr Field<TransformerConfig> kModel[] = {
    {"name", "text", "name shown in reports", Plain<&M::name>::read},
    {"layers", "whole number from 1", "transformer blocks", Bounded<&M::layers, 1, 1 << 16>::read},
    {"hidden", "whole number from 1", "width of the residual stream", Bounded<&M::hidden, 1, kMost>::read},
    {"heads", "whole number from 1", "attention heads", Bounded<&M::heads, 1, 1 << 16>::read},
    {"kv_heads", "whole number from 1", "key and value heads (GQA, MQA); heads when left out",
     Bounded<&M::kv_heads, 1, 1 << 16>::read},
    {"head_dim", "whole number from 1", "width of a head; hidden / heads when left out",
     Bounded<&M::head_dim, 1, 1 << 16>::read},
    {"ffn_hidden", "whole number from 1", "width inside the MLP; 4 * hidden when left out",
     Bounded<&M::ffn_hidden, 1, kMost>::read},
    {"vocab", "whole number from 1", "vocabulary", Bounded<&M::vocab, 1, kMost>::read},
    {"max_positions", "whole number from 1", "longest sequence", Bounded<&M::max_positions, 1, kMost>::read},
    {"norm", "layer_norm or rms_norm", "normalisation", Choice<&M::norm, kNorms>::read},
    {"activation", "gelu or swiglu", "MLP activation", Choice<&M::activation, kActivations>::read},
    {"positions", "learned or rotary", "position encoding", Choice<&M::positions, kPositions>::read},
    {"tied_head", "true or false", "lm_head shares the token embedding", Plain<&M::tied_head>::read},
    {"qkv_bias", "true or false", "bias of the query, key and value projections", Plain<&M::qkv_bias>::read},
    {"attention_out_bias", "true or false", "bias of the attention's output projection",
     Plain<&M::attention_out_bias>::read},
    {"mlp_bias", "true or false", "biases of the MLP", Plain<&M::mlp_bias>::read},
    {"norm_bias", "true or false", "bias of the norms", Plain<&M::norm_bias>::read},
    {"head_bias", "true or false", "bias of lm_head", Plain<&M::head_bias>::read},
    {"fused_qkv", "true or false", "one qkv projection instead of three", Plain<&M::fused_qkv>::read},
    {"causal_mask_buffers", "true or false", "every block owns a max_positions^2 fp32 mask",
     Plain<&M::causal_mask_buffers>::read},
    {"sliding_window", "whole number from 0", "attention window; 0: none",
     Bounded<&M::sliding_window, 0, kMost>::read},
    {"attention_dropout", "number from 0 to 1", "dropout rate of attention weights",
     Bounded<&M::attention_dropout, 0, 1>::read},
    {"residual_dropout", "number from 0 to 1", "dropout rate of both branches of a block",
     Bounded<&M::residual_dropout, 0, 1>::read},
    {"embedding_dropout", "number from 0 to 1", "dropout rate after the embedding",
     Bounded<&M::embedding_dropout, 0, 1>::read},
};

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const TransformerConfig& preset : model_presets()) names.push_back(preset.name);
  return names;
}

}  // namespace

std::span<const Field<TransformerConfig>> model_fields() { return kModel; }

bool read_model(const JsonValue& value, const std::string& folder, TransformerConfig& model, Errors& errors) {
  const std::size_t before = errors.size();
  if (value.is_string()) {  // "model": "gpt2" is short for {"preset": "gpt2"}
    const TransformerConfig* preset = find_model(value.as_string());
    if (preset != nullptr) {
      model = *preset;
    } else {
      errors.push_back(Error{ErrorCode::input, value.where(),
                             "is " + in_quotes(value.as_string()) + ", which is no model preset",
                             did_you_mean(value.as_string(), preset_names(), "presets")});
    }
    return errors.size() == before;
  }
  bool complete = false;
  const JsonValue* preset_name = value.find("preset");
  const JsonValue* import = value.find("import");
  if (preset_name != nullptr && import != nullptr) {
    errors.push_back(Error{ErrorCode::input, import->key_where(), "is given together with \"preset\"",
                           "keep one of \"preset\" and \"import\""});
    complete = true;
  } else if (preset_name != nullptr) {
    std::string name;
    if (read_value(*preset_name, name, errors)) {
      const TransformerConfig* preset = find_model(name);
      if (preset == nullptr) {
        errors.push_back(Error{ErrorCode::input, preset_name->where(),
                               "is " + in_quotes(name) + ", which is no model preset",
                               did_you_mean(name, preset_names(), "presets")});
      } else {
        model = *preset;
      }
    }
    complete = true;
  } else if (import != nullptr) {
    std::string path;
    if (read_value(*import, path, errors)) {
      const std::filesystem::path full = std::filesystem::path(folder) / path;
      auto text = read_file(full.string());
      if (!text) {
        add_located(errors, std::move(text.error()), import->where());
      } else if (auto config = import_hugging_face(*text, full.string())) {
        model = std::move(*config);
      } else {
        for (Error& error : config.error()) errors.push_back(std::move(error));
      }
    }
    complete = true;
  }
  read_fields<TransformerConfig>(value, model_fields(), model, errors, {"preset", "import"});
  if (!complete && value.is_object()) {
    for (const std::string_view key : {"layers", "hidden", "heads", "vocab", "max_positions"}) {
      if (value.find(key) != nullptr) continue;
      Location where = value.where();
      where.path += (where.path.empty() ? "" : ".") + std::string(key);
      errors.push_back(
          Error{ErrorCode::input, where, "is missing",
                "give it, or name a preset: \"preset\": \"gpt2\" (`foretrain list models` shows all)"});
    }
    if (value.find("name") == nullptr) model.name = "custom";
    if (value.find("kv_heads") == nullptr) model.kv_heads = model.heads;
    if (value.find("head_dim") == nullptr && model.heads > 0) model.head_dim = model.hidden / model.heads;
    if (value.find("ffn_hidden") == nullptr) model.ffn_hidden = 4 * model.hidden;
  }
  return errors.size() == before;
}

}  // namespace foretrain
