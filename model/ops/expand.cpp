#include "model/ops/expand.h"

#include <algorithm>

#include "model/ops/layers.h"

namespace foretrain {
namespace {

// embedding_dense_backward (aten/src/ATen/native/cuda/Embedding.cu): zeros, then one kernel for at most 3072
// indices; more are sorted first.
int embedding_backward_launches(std::int64_t indices) { return indices <= 3072 ? 2 : 8; }

BlockExpansion expand_embedding(EagerTape& tape, const LayerSizes& s) {
  const TransformerConfig& m = tape.context().model;
  const bool learned = m.positions == PositionKind::learned;
  const std::int64_t elements = s.tokens * s.hidden;
  const Value looked_up = tape.value("embedding.token", elements, s.stream);
  Op lookup = memory_op(OpRole::embedding, "embedding.token", looked_up.bytes() + Bytes(8 * s.tokens),
                        looked_up.bytes());
  tape.emit(lookup, {}, {looked_up.tensor});
  const std::int64_t table = tape.local_elements("token.weight");
  tape.on_backward([&tape, &s, looked_up, table] {
    // embedding_dense_backward: a zeroed table, then the sorted rows added to it. A tied head's gradient is
    // added.
    const std::int32_t grad = tape.gradient(looked_up);
    const Bytes whole(table * size_of(s.stream));
    tape.set_part(EagerTape::Part::weight);
    tape.emit(memory_op(OpRole::embedding, "embedding.token.gradient", looked_up.bytes(),
                        whole + looked_up.bytes(), embedding_backward_launches(s.tokens)),
              {grad});
    if (tape.context().model.tied_head) {
      tape.emit(memory_op(OpRole::embedding, "embedding.token.tied_gradient_add", whole * 2, whole), {});
    }
    tape.completes("token.weight");
    tape.set_part(EagerTape::Part::both);
  });
  Value x = looked_up;
  if (s.megatron) x = leave_tensor_parallel(tape, s, x, "embedding");
  if (learned) {
    const std::int64_t rows = s.sequence * s.hidden / (s.sequence_parallel ? s.tp : 1);
    const std::int32_t position = tape.tensor("embedding.position", rows, s.stream);
    const Bytes row_bytes(rows * size_of(s.stream));
    tape.emit(memory_op(OpRole::position, "embedding.position", row_bytes, row_bytes), {}, {position});
    const Value sum = tape.value("embedding.sum", x.elements, s.stream);
    tape.emit(memory_op(OpRole::position, "embedding.add", x.bytes() + row_bytes, sum.bytes()),
              {x.tensor, position}, {sum.tensor});
    const Bytes table_bytes(m.max_positions * s.hidden * size_of(s.stream));
    const Value token = x;
    tape.on_backward([&tape, &s, token, sum, table_bytes, row_bytes] {
      const std::int32_t grad = tape.gradient(sum);
      tape.set_part(EagerTape::Part::weight);
      tape.emit(memory_op(OpRole::position, "embedding.position.gradient", sum.bytes() + row_bytes,
                          table_bytes + row_bytes, 1 + embedding_backward_launches(s.sequence)),
                {grad});
      tape.completes("position.weight");
      tape.set_part(EagerTape::Part::both);
      tape.give_gradient(token, grad);
    });
    x = sum;
  }
  x = dropout(tape, x, m.embedding_dropout, "embedding.dropout");
  return tape.finish(Value{}, x, false);
}

BlockExpansion expand_layer(EagerTape& tape, const LayerSizes& s) {
  const TransformerConfig& m = tape.context().model;
  const Value x = tape.input(s.shard_tokens * s.hidden, s.stream);
  const Value a = dropout(tape, attention(tape, s, norm(tape, s, x, "norm1")), m.residual_dropout,
                          "attn.residual_dropout");
  tape.function_returns();
  const Value mid = residual_add(tape, x, a, "attn.residual");
  const Value b =
      dropout(tape, mlp(tape, s, norm(tape, s, mid, "norm2")), m.residual_dropout, "mlp.residual_dropout");
  tape.function_returns();
  const Value out = residual_add(tape, mid, b, "mlp.residual");
  return tape.finish(x, out, false);
}

// Cross-entropy over the vocabulary. F.cross_entropy under autocast passes the logits' own dtype to
// log_softmax and casts its output to fp32 for nll_loss, which saves it; in pure 16 bit the module code casts
// the logits first. nll_loss gives a gradient of full size: zeros, and one value a row.
void cross_entropy(EagerTape& tape, const LayerSizes& s, const Value& given) {
  const bool cast_after = is_amp(tape.context().training.precision) && !s.megatron;
  const Value logits = cast_after ? given : cast(tape, given, DType::fp32, "loss.logits_cast");
  tape.hold(logits);
  const Value softmax = tape.value("loss.log_softmax", logits.elements, logits.dtype);
  if (s.megatron) {
    const std::int32_t rows = tape.tensor("loss.row_statistics", 3 * s.tokens, DType::fp32);
    tape.emit(memory_op(OpRole::loss, "loss.row_max", logits.bytes(), Bytes(4 * s.tokens)), {logits.tensor},
              {rows});
    for (const char* name : {"loss.max.all_reduce", "loss.target.all_reduce", "loss.sum.all_reduce"}) {
      collective(tape, CollectiveKind::all_reduce, Bytes(4 * s.tokens), DType::fp32, name, rows);
    }
  }
  tape.emit(memory_op(OpRole::loss, "loss.log_softmax", logits.bytes(), softmax.bytes()), {logits.tensor},
            {softmax.tensor});
  tape.on_backward([&tape, logits, softmax] {
    const std::int32_t spread = tape.gradient(softmax);
    const std::int32_t grad = tape.gradient_tensor(logits);
    tape.emit(memory_op(OpRole::loss, "loss.log_softmax.backward", softmax.bytes() * 2, logits.bytes()),
              {spread, softmax.tensor}, {grad});
    tape.give_gradient(logits, grad);
  });
  const Value wide = cast(tape, softmax, DType::fp32, "loss.log_softmax_cast");
  tape.emit(memory_op(OpRole::loss, "loss.nll", Bytes(12 * s.tokens), Bytes(4)), {wide.tensor});
  const bool scaled = tape.context().training.precision == Precision::fp16_amp;
  const Bytes scalar(4);
  if (scaled) tape.emit(memory_op(OpRole::gradient_scaling, "loss.scale", scalar * 2, scalar), {});
  tape.on_backward([&tape, &s, wide, scaled, scalar] {
    tape.emit(memory_op(OpRole::loss, "loss.seed", Bytes(0), scalar), {});
    if (scaled) tape.emit(memory_op(OpRole::gradient_scaling, "loss.scale.backward", scalar * 2, scalar), {});
    const std::int32_t spread = tape.gradient_tensor(wide);
    tape.emit(memory_op(OpRole::loss, "loss.nll.backward", Bytes(12 * s.tokens), wide.bytes(), 2),
              {wide.tensor}, {spread});
    tape.give_gradient(wide, spread);
  });
}

BlockExpansion expand_head(EagerTape& tape, const LayerSizes& s) {
  const TransformerConfig& m = tape.context().model;
  const Value x = tape.input(s.shard_tokens * s.hidden, s.stream);
  Value h = norm(tape, s, x, "norm");
  if (s.megatron)
    h = enter_tensor_parallel(tape, s, cast(tape, h, s.compute, "lm_head.input_cast"), "lm_head");
  const Value logits =
      linear(tape, s, h, s.hidden, m.vocab, m.head_bias, s.megatron ? Split::column : Split::none, "lm_head");
  cross_entropy(tape, s, logits);
  tape.function_returns();
  BlockExpansion result = tape.finish(x, x, true);
  if (m.tied_head) {  // complete only when the embedding's backward has added its part
    const std::vector<Parameter> parameters = block_parameters(m, m.layers + 1);
    for (std::vector<Op>* list : {&result.backward, &result.backward_weight}) {
      for (Op& op : *list) {
        std::erase_if(op.completes, [&](std::int32_t p) {
          return parameters[static_cast<std::size_t>(p)].tied_to_embedding;
        });
      }
    }
  }
  return result;
}

}  // namespace

BlockExpansion expand(BlockKind kind, const ExpansionContext& given) {
  ExpansionContext context = given;
  if (kind != BlockKind::layer) context.training.recompute = Recompute::none;
  const LayerSizes sizes(context);
  const std::int64_t block = kind == BlockKind::embedding ? 0
                             : kind == BlockKind::layer   ? 1
                                                          : context.model.layers + 1;
  EagerTape tape(context, block_parameters(context.model, block));
  switch (kind) {
    case BlockKind::embedding:
      return expand_embedding(tape, sizes);
    case BlockKind::layer:
      return expand_layer(tape, sizes);
    case BlockKind::head:
      return expand_head(tape, sizes);
  }
  return {};
}

std::int64_t local_elements(const Parameter& parameter, std::int32_t tp, TensorParallelKind kind) {
  const std::int64_t elements = parameter.elements();
  if (tp <= 1) return elements;
  const bool layer = parameter.name.starts_with("blocks.");
  if (kind == TensorParallelKind::column_gather) {
    // Weight and bias of every Linear inside the layers, by output column.
    const bool norm = parameter.name.find(".norm") != std::string::npos;
    return layer && !norm ? elements / tp : elements;
  }
  if (parameter.megatron_split == TensorSplit::replicated) return elements;
  if (parameter.megatron_split == TensorSplit::vocabulary) {
    const std::int64_t width = elements / parameter.shape.front();
    return (parameter.shape.front() + tp - 1) / tp * width;
  }
  if (parameter.head_rows > 0) {
    const std::int64_t rows = parameter.shape.front();
    const auto share = [&](std::int64_t of) { return of > 0 ? std::max(of / tp, parameter.head_rows) : 0; };
    const std::int64_t query_rows = rows - parameter.key_rows - parameter.value_rows;
    return (query_rows / tp + share(parameter.key_rows) + share(parameter.value_rows)) * (elements / rows);
  }
  return elements / tp;
}

Flops model_flops_6n(const TransformerConfig& model, double tokens) {
  return Flops(6.0 * static_cast<double>(parameter_count(model)) * tokens);
}

Flops model_flops_with_attention(const TransformerConfig& model, std::int64_t sequence_length,
                                 double tokens) {
  const double attention = 12.0 * static_cast<double>(model.layers) *
                           static_cast<double>(model.heads * model.head_dim) *
                           static_cast<double>(sequence_length);
  return Flops((6.0 * static_cast<double>(parameter_count(model)) + attention) * tokens);
}

std::string_view name_of(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::parameters:
      return "parameters";
    case MemoryClass::gradients:
      return "gradients";
    case MemoryClass::optimizer:
      return "optimizer";
    case MemoryClass::activations:
      return "activations";
    case MemoryClass::buffers:
      return "buffers";
    case MemoryClass::workspace:
      return "workspace";
    case MemoryClass::communication:
      return "communication";
  }
  return "?";
}

std::string_view name_of(OpKind kind) {
  switch (kind) {
    case OpKind::matmul:
      return "matmul";
    case OpKind::attention_forward:
      return "attention_forward";
    case OpKind::attention_backward:
      return "attention_backward";
    case OpKind::memory_bound:
      return "memory_bound";
    case OpKind::collective:
      return "collective";
    case OpKind::host_sync:
      return "host_sync";
  }
  return "?";
}

std::string_view name_of(OpRole role) {
  static constexpr std::string_view kNames[] = {"matmul",
                                                "attention",
                                                "norm",
                                                "softmax",
                                                "mask",
                                                "activation",
                                                "dropout",
                                                "residual",
                                                "bias_gradient",
                                                "cast",
                                                "copy",
                                                "embedding",
                                                "position",
                                                "loss",
                                                "optimizer",
                                                "gradient_scaling",
                                                "gradient_clipping",
                                                "collective",
                                                "sync"};
  return kNames[static_cast<std::size_t>(role)];
}

}  // namespace foretrain
