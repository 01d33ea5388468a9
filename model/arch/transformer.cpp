#include "model/arch/transformer.h"

#include <fmt/format.h>

namespace foretrain {
namespace {

using Shape = std::vector<std::int64_t>;

void add(std::vector<Parameter>& list, std::string name, Shape shape, TensorSplit split,
         bool matmul = false) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.shape = std::move(shape);
  parameter.megatron_split = split;
  parameter.is_matmul_weight = matmul;
  list.push_back(std::move(parameter));
}

void add_norm(std::vector<Parameter>& list, const TransformerConfig& model, const std::string& name) {
  add(list, name + ".weight", {model.hidden}, TensorSplit::replicated);
  if (model.norm == NormKind::layer_norm && model.norm_bias) {
    add(list, name + ".bias", {model.hidden}, TensorSplit::replicated);
  }
}

void add_linear(std::vector<Parameter>& list, const std::string& name, std::int64_t in, std::int64_t out,
                bool bias, TensorSplit split) {
  add(list, name + ".weight", {out, in}, split, true);
  // The bias of a row-parallel layer is added after the reduction, whole on every rank.
  if (bias) add(list, name + ".bias", {out}, split == TensorSplit::row ? TensorSplit::replicated : split);
}

std::vector<Parameter> layer_parameters(const TransformerConfig& m, std::int64_t layer) {
  std::vector<Parameter> list;
  const std::string prefix = fmt::format("blocks.{}.", layer);
  const std::int64_t q = m.heads * m.head_dim;
  const std::int64_t kv = m.kv_heads * m.head_dim;
  add_norm(list, m, prefix + "norm1");
  if (m.fused_qkv) {
    add_linear(list, prefix + "attn.qkv", m.hidden, q + 2 * kv, m.qkv_bias, TensorSplit::column);
  } else {
    add_linear(list, prefix + "attn.q", m.hidden, q, m.qkv_bias, TensorSplit::column);
    add_linear(list, prefix + "attn.k", m.hidden, kv, m.qkv_bias, TensorSplit::column);
    add_linear(list, prefix + "attn.v", m.hidden, kv, m.qkv_bias, TensorSplit::column);
  }
  for (Parameter& parameter : list) {
    if (parameter.megatron_split != TensorSplit::column) continue;
    const bool keys = m.fused_qkv || parameter.name.starts_with(prefix + "attn.k.");
    const bool values = m.fused_qkv || parameter.name.starts_with(prefix + "attn.v.");
    parameter.key_rows = keys ? kv : 0;
    parameter.value_rows = values ? kv : 0;
    parameter.head_rows = m.head_dim;
  }
  add_linear(list, prefix + "attn.proj", q, m.hidden, m.attention_out_bias, TensorSplit::row);
  add_norm(list, m, prefix + "norm2");
  if (m.activation == Activation::swiglu) {
    add_linear(list, prefix + "mlp.gate", m.hidden, m.ffn_hidden, m.mlp_bias, TensorSplit::column);
    add_linear(list, prefix + "mlp.up", m.hidden, m.ffn_hidden, m.mlp_bias, TensorSplit::column);
    add_linear(list, prefix + "mlp.down", m.ffn_hidden, m.hidden, m.mlp_bias, TensorSplit::row);
  } else {
    add_linear(list, prefix + "mlp.fc1", m.hidden, m.ffn_hidden, m.mlp_bias, TensorSplit::column);
    add_linear(list, prefix + "mlp.fc2", m.ffn_hidden, m.hidden, m.mlp_bias, TensorSplit::row);
  }
  return list;
}

}  // namespace

std::int64_t Parameter::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::int64_t block_count(const TransformerConfig& model) { return model.layers + 2; }

BlockKind block_kind(const TransformerConfig& model, std::int64_t block) {
  if (block == 0) return BlockKind::embedding;
  return block <= model.layers ? BlockKind::layer : BlockKind::head;
}

std::vector<Parameter> block_parameters(const TransformerConfig& model, std::int64_t block) {
  switch (block_kind(model, block)) {
    case BlockKind::embedding: {
      std::vector<Parameter> list;
      add(list, "embedding.token.weight", {model.vocab, model.hidden}, TensorSplit::vocabulary);
      if (model.positions == PositionKind::learned) {
        add(list, "embedding.position.weight", {model.max_positions, model.hidden}, TensorSplit::replicated);
      }
      return list;
    }
    case BlockKind::layer:
      return layer_parameters(model, block - 1);
    case BlockKind::head:
      break;
  }
  std::vector<Parameter> list;
  add_norm(list, model, "head.norm");
  add_linear(list, "head.lm_head", model.hidden, model.vocab, model.head_bias, TensorSplit::vocabulary);
  for (Parameter& parameter : list) {
    parameter.tied_to_embedding = model.tied_head && parameter.name == "head.lm_head.weight";
  }
  return list;
}

std::int64_t parameter_count(const TransformerConfig& model) {
  const auto count = [&](std::int64_t block) {
    std::int64_t sum = 0;
    for (const Parameter& p : block_parameters(model, block)) sum += p.tied_to_embedding ? 0 : p.elements();
    return sum;
  };
  return count(0) + model.layers * count(1) + count(model.layers + 1);
}

std::int64_t non_embedding_parameter_count(const TransformerConfig& model) {
  std::int64_t embeddings = model.vocab * model.hidden;
  if (!model.tied_head) embeddings *= 2;
  if (model.positions == PositionKind::learned) embeddings += model.max_positions * model.hidden;
  return parameter_count(model) - embeddings;
}

Errors check(const TransformerConfig& m) {
  Errors errors;
  const auto error = [&](std::string path, std::string message, std::string hint = {}) {
    errors.push_back(
        Error{ErrorCode::input, {"", 0, 0, std::move(path)}, std::move(message), std::move(hint)});
  };
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"layers", m.layers},     {"hidden", m.hidden},
      {"heads", m.heads},       {"kv_heads", m.kv_heads},
      {"head_dim", m.head_dim}, {"ffn_hidden", m.ffn_hidden},
      {"vocab", m.vocab},       {"max_positions", m.max_positions}};
  for (const auto& [name, value] : sizes) {
    if (value < 1) error(name, fmt::format("is {}; expected a whole number from 1", value));
  }
  if (!errors.empty()) return errors;
  if (m.heads % m.kv_heads != 0) {
    error("kv_heads", fmt::format("is {}, which does not divide heads = {}", m.kv_heads, m.heads),
          "use a divisor of heads");
  }
  if (m.fused_qkv && m.heads * m.head_dim != m.hidden && m.positions == PositionKind::learned) {
    error("head_dim",
          fmt::format("is {}; {} heads x {} = {}, but hidden is {}", m.head_dim, m.heads, m.head_dim,
                      m.heads * m.head_dim, m.hidden),
          "choose heads that divide hidden and leave head_dim out");
  }
  if (m.positions == PositionKind::rotary && m.head_dim % 2 != 0) {
    error("head_dim", fmt::format("is {}; rotary positions need an even one", m.head_dim));
  }
  const std::pair<const char*, double> rates[] = {{"attention_dropout", m.attention_dropout},
                                                  {"residual_dropout", m.residual_dropout},
                                                  {"embedding_dropout", m.embedding_dropout}};
  for (const auto& [name, rate] : rates) {
    if (!(rate >= 0 && rate < 1)) error(name, fmt::format("is {}; expected a rate from 0 to below 1", rate));
  }
  return errors;
}

}  // namespace foretrain
