// The architecture of a decoder-only transformer, and what follows from it alone: its parameters.
// Value types; safe to read from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"

namespace foretrain {

enum class NormKind : std::uint8_t { layer_norm, rms_norm };
enum class Activation : std::uint8_t { gelu, swiglu };
enum class PositionKind : std::uint8_t { learned, rotary };
// eager: the module code as written, every product and sum a kernel of its own. flash: flash attention, and
// the fused RMSNorm and rotary kernels of the libraries that ship it.
enum class AttentionKernel : std::uint8_t { eager, flash };

struct TransformerConfig {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // == heads: MHA; 1: MQA; between: GQA
  std::int64_t head_dim = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  NormKind norm = NormKind::layer_norm;
  Activation activation = Activation::gelu;
  PositionKind positions = PositionKind::learned;
  bool tied_head = true;  // lm_head shares the token embedding's weight
  bool qkv_bias = true;
  bool attention_out_bias = true;
  bool mlp_bias = true;
  bool norm_bias = true;  // LayerNorm's beta; RMSNorm has none
  bool head_bias = false;
  bool fused_qkv = true;             // one qkv Linear (GPT-2) or three (Llama)
  bool causal_mask_buffers = false;  // every block owns a max_positions^2 fp32 mask buffer
  std::int64_t sliding_window = 0;   // 0: none (Mistral: 4096)
  double attention_dropout = 0;
  double residual_dropout = 0;  // after attention projection and after the MLP
  double embedding_dropout = 0;

  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

// Blocks in forward order: 0 = embedding, 1..layers = layer, layers+1 = head (final norm, lm_head, loss).
enum class BlockKind : std::uint8_t { embedding, layer, head };
std::int64_t block_count(const TransformerConfig& model);
BlockKind block_kind(const TransformerConfig& model, std::int64_t block);

// How tensor parallelism splits a parameter: column = the output dimension, row = the input dimension,
// vocabulary = the rows of the embedding; replicated = every rank holds it whole.
enum class TensorSplit : std::uint8_t { replicated, column, row, vocabulary };

// One parameter tensor of a block, in the order of PyTorch's module.parameters().
struct Parameter {
  std::string name;                 // "blocks.3.attn.qkv.weight"
  std::vector<std::int64_t> shape;  // PyTorch's shape, unsplit
  TensorSplit megatron_split = TensorSplit::replicated;
  // Rows that are keys and values. A tensor-parallel rank holds whole heads: `head_rows` of each at least, so
  // that with more ranks than key-value heads several ranks hold the same one.
  std::int64_t key_rows = 0, value_rows = 0, head_rows = 0;
  bool is_matmul_weight = false;   // decays, and is cast by autocast
  bool tied_to_embedding = false;  // lm_head.weight when tied: listed with the head, counted once
  std::int64_t elements() const;
};
std::vector<Parameter> block_parameters(const TransformerConfig& model, std::int64_t block);
// All parameters counted once (a tied head adds nothing).
std::int64_t parameter_count(const TransformerConfig& model);
// As parameter_count without embeddings of tokens and positions (the N of scaling laws).
std::int64_t non_embedding_parameter_count(const TransformerConfig& model);

// Every inconsistency of a config (heads * head_dim, kv_heads dividing heads, sizes > 0 ...), as errors
// with the dotted field name in where.path.
Errors check(const TransformerConfig& model);

std::span<const TransformerConfig> model_presets();
const TransformerConfig* find_model(std::string_view name);

}  // namespace foretrain
