#include "model/ops/layers.h"

namespace foretrain {
namespace {

Bytes bytes_of(std::int64_t elements, DType dtype) { return Bytes(elements * size_of(dtype)); }

Op batched_matmul(const EagerTape& tape, const LayerSizes& s, const std::string& name, std::int64_t m,
                  std::int64_t n, std::int64_t k, MatmulLayout layout) {
  const std::int64_t batch = s.batch * s.heads;
  Op op;
  op.kind = OpKind::matmul;
  op.role = OpRole::attention;
  op.name = name;
  op.matmul = MatmulShape{
      batch, m, n, k, s.compute, s.compute, tape.context().training.precision != Precision::fp32, layout};
  op.read = bytes_of(batch * (m * k + k * n), s.compute);
  op.written = bytes_of(batch * m * n, s.compute);
  op.flops = Flops(2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
                   static_cast<double>(k));
  return op;
}

Value view_of(EagerTape& tape, const Value& x) {
  Value y = tape.input(x.elements, x.dtype);
  y.tensor = x.tensor;
  return y;
}

// Heads to the front, a view. Its gradient comes with the heads in front and is copied into the Linear's
// layout.
Value split_heads(EagerTape& tape, const Value& x, bool copies, const std::string& name) {
  if (!copies) return x;
  const Value y = view_of(tape, x);
  tape.on_backward([&tape, x, y, name] {
    const std::int32_t dx = tape.gradient_tensor(x);
    tape.emit(memory_op(OpRole::copy, name + ".gradient_copy", x.bytes(), x.bytes()), {tape.gradient(y)},
              {dx});
    tape.give_gradient(x, dx);
  });
  return y;
}

// x made contiguous for bmm, its heads repeated for the query heads that share them; the backward sums over
// those.
Value contiguous(EagerTape& tape, const Value& x, std::int64_t elements, const std::string& name) {
  const Value y = tape.value(name, elements, x.dtype);
  tape.emit(memory_op(OpRole::copy, name, x.bytes(), y.bytes()), {x.tensor}, {y.tensor});
  tape.on_backward([&tape, x, y, name] {
    const std::int32_t grad = tape.gradient(y);
    if (x.elements == y.elements) {
      tape.give_gradient(x, grad);
      return;
    }
    const std::int32_t dx = tape.gradient_tensor(x);
    tape.emit(memory_op(OpRole::copy, name + ".sum_of_gradients", y.bytes(), x.bytes()), {grad}, {dx});
    tape.give_gradient(x, dx);
  });
  return y;
}

struct QueryKeyValue {
  Value q, k, v;
};

// One projection and its split: q, k, v are views, their gradients are concatenated in the backward.
QueryKeyValue project_fused(EagerTape& tape, const LayerSizes& s, const Value& x) {
  const TransformerConfig& m = tape.context().model;
  const std::int64_t width = (s.heads + 2 * s.kv_heads) * m.head_dim * (s.megatron ? s.tp : 1);
  const Value qkv =
      linear(tape, s, x, s.hidden, width, m.qkv_bias, s.tp > 1 ? Split::column : Split::none, "attn.qkv");
  const auto view = [&](std::int64_t elements) {
    Value part = view_of(tape, qkv);
    part.elements = elements;
    return part;
  };
  const QueryKeyValue parts{view(s.tokens * s.q_width), view(s.tokens * s.kv_width),
                            view(s.tokens * s.kv_width)};
  tape.on_backward([&tape, parts, qkv] {
    const std::int32_t whole = tape.gradient_tensor(qkv);
    tape.emit(memory_op(OpRole::copy, "attn.qkv.concatenate_gradients", qkv.bytes(), qkv.bytes()),
              {tape.gradient(parts.q), tape.gradient(parts.k), tape.gradient(parts.v)}, {whole});
    tape.give_gradient(qkv, whole);
  });
  return parts;
}

QueryKeyValue project_separate(EagerTape& tape, const LayerSizes& s, const Value& x) {
  const TransformerConfig& m = tape.context().model;
  const Split split = s.tp > 1 ? Split::column : Split::none;
  // Whole heads: with more ranks than key-value heads, several ranks compute the same one.
  const std::int64_t kv = s.kv_width * (s.megatron ? s.tp : 1);
  // Autocast keeps no casts of activations: each of the three casts the input for itself.
  const Value q = linear(tape, s, x, s.hidden, m.heads * m.head_dim, m.qkv_bias, split, "attn.q");
  const Value k = linear(tape, s, x, s.hidden, kv, m.qkv_bias, split, "attn.k");
  const Value v = linear(tape, s, x, s.hidden, kv, m.qkv_bias, split, "attn.v");
  return {q, k, v};
}

// softmax(q k^T / sqrt(d)) v with the scores in memory, as the module code writes it. Under fp16 autocast
// softmax reads fp16 and writes fp32 in one kernel; under bf16 autocast the cast is a kernel of its own.
Value eager_core(EagerTape& tape, const LayerSizes& s, const QueryKeyValue& in) {
  const TransformerConfig& model = tape.context().model;
  const std::int64_t scores = s.batch * s.heads * s.sequence * s.sequence;
  // torch.matmul makes the strided views contiguous before bmm.
  const Value q = contiguous(tape, in.q, in.q.elements, "attn.q.contiguous");
  const Value k = contiguous(tape, in.k, s.tokens * s.q_width, "attn.k.contiguous");
  const Value v = contiguous(tape, in.v, s.tokens * s.q_width, "attn.v.contiguous");

  const Value raw = tape.value("attn.scores", scores, s.compute);
  tape.emit(batched_matmul(tape, s, "attn.scores", s.sequence, s.sequence, s.head_dim, MatmulLayout::tn),
            {q.tensor, k.tensor}, {raw.tensor});
  tape.on_backward([&tape, &s, q, k, raw] {
    const std::int32_t grad = tape.gradient(raw);
    const std::int32_t dk = tape.gradient_tensor(k);
    const std::int32_t dq = tape.gradient_tensor(q);
    // BmmBackward makes the gradient of the second factor first, here that of k^T.
    tape.emit(batched_matmul(tape, s, "attn.scores.k_gradient", s.head_dim, s.sequence, s.sequence,
                             MatmulLayout::nt),
              {grad, q.tensor}, {dk});
    tape.emit(batched_matmul(tape, s, "attn.scores.q_gradient", s.sequence, s.head_dim, s.sequence,
                             MatmulLayout::nn),
              {grad, k.tensor}, {dq});
    tape.give_gradient(q, dq);
    tape.give_gradient(k, dk);
  });
  const Value scaled = tape.value("attn.scale", scores, s.compute);
  tape.emit(memory_op(OpRole::softmax, "attn.scale", raw.bytes(), raw.bytes()), {raw.tensor},
            {scaled.tensor});
  tape.on_backward([&tape, raw, scaled] {
    const std::int32_t dx = tape.gradient_tensor(raw);
    tape.emit(memory_op(OpRole::softmax, "attn.scale.backward", raw.bytes(), raw.bytes()),
              {tape.gradient(scaled)}, {dx});
    tape.give_gradient(raw, dx);
  });
  const std::int32_t mask = tape.tensor("attn.mask", s.sequence * s.sequence, DType::boolean);
  const Value masked = tape.value("attn.masked", scores, s.compute);
  tape.emit(memory_op(OpRole::mask, "attn.mask", bytes_of(s.sequence * s.sequence, DType::fp32),
                      Bytes(s.sequence * s.sequence)),
            {}, {mask});
  tape.emit(memory_op(OpRole::mask, "attn.masked_fill", scaled.bytes(), masked.bytes()),
            {scaled.tensor, mask}, {masked.tensor});
  tape.on_backward([&tape, scaled, masked, mask] {
    const std::int32_t grad = tape.gradient(masked);
    const std::int32_t dx = tape.gradient_tensor(scaled);
    tape.emit(memory_op(OpRole::mask, "attn.masked_fill.backward", masked.bytes(), scaled.bytes()),
              {grad, mask}, {dx});
    tape.give_gradient(scaled, dx);
  });
  const bool fused_cast = tape.context().training.precision == Precision::fp16_amp;
  const Value logits = fused_cast ? masked : cast(tape, masked, s.norm, "attn.softmax.input_cast");
  const Value weights = tape.value("attn.softmax", scores, s.norm);
  tape.emit(memory_op(OpRole::softmax, "attn.softmax", logits.bytes(), weights.bytes()), {logits.tensor},
            {weights.tensor});
  tape.on_backward([&tape, logits, weights] {
    const std::int32_t grad = tape.gradient(weights);
    const std::int32_t dx = tape.gradient_tensor(logits);
    tape.emit(memory_op(OpRole::softmax, "attn.softmax.backward", weights.bytes() * 2, logits.bytes()),
              {grad, weights.tensor}, {dx});
    tape.give_gradient(logits, dx);
  });
  const Value dropped = dropout(tape, weights, model.attention_dropout, "attn.dropout");
  tape.hold(dropped);
  const Value p = cast(tape, dropped, s.compute, "attn.weights_cast");
  const Value out = tape.value("attn.context", s.tokens * s.q_width, s.compute);
  tape.emit(batched_matmul(tape, s, "attn.context", s.sequence, s.head_dim, s.sequence, MatmulLayout::nn),
            {p.tensor, v.tensor}, {out.tensor});
  tape.on_backward([&tape, &s, p, v, out] {
    const std::int32_t grad = tape.gradient(out);
    const std::int32_t dv = tape.gradient_tensor(v);
    const std::int32_t dp = tape.gradient_tensor(p);
    tape.emit(batched_matmul(tape, s, "attn.context.v_gradient", s.sequence, s.head_dim, s.sequence,
                             MatmulLayout::nt),
              {grad, p.tensor}, {dv});
    tape.emit(batched_matmul(tape, s, "attn.context.weights_gradient", s.sequence, s.sequence, s.head_dim,
                             MatmulLayout::tn),
              {grad, v.tensor}, {dp});
    tape.give_gradient(p, dp);
    tape.give_gradient(v, dv);
  });
  return contiguous(tape, split_heads(tape, out, true, "attn.context"), out.elements,
                    "attn.context.contiguous");
}

// Scaled-dot-product attention as one kernel; saves q, k, v, the output and the log-sum-exp.
Value flash_core(EagerTape& tape, const LayerSizes& s, const QueryKeyValue& in) {
  const TransformerConfig& model = tape.context().model;
  const AttentionShape shape{s.batch,    s.sequence,           s.sequence, s.heads,  s.kv_heads,
                             s.head_dim, model.sliding_window, true,       s.compute};
  const Value out = tape.value("attn.context", s.tokens * s.q_width, s.compute);
  const std::int32_t statistics =
      tape.tensor("attn.log_sum_exp", s.batch * s.heads * s.sequence, DType::fp32);
  // Causal: half of the score matrix, with a window: the band of it.
  const double seq = static_cast<double>(s.sequence);
  const double window = static_cast<double>(model.sliding_window);
  const double pairs = window > 0 && window < seq ? seq * window - window * window / 2 : seq * seq / 2;
  Op op;
  op.kind = OpKind::attention_forward;
  op.role = OpRole::attention;
  op.name = "attn.flash";
  op.attention = shape;
  op.read = in.q.bytes() + in.k.bytes() + in.v.bytes();
  op.written = out.bytes();
  op.flops = Flops(4.0 * static_cast<double>(s.batch * s.heads * s.head_dim) * pairs);
  const Op forward = op;
  tape.emit(op, {in.q.tensor, in.k.tensor, in.v.tensor}, {out.tensor, statistics});
  tape.on_backward([&tape, in, out, statistics, forward] {
    const std::int32_t grad = tape.gradient(out);
    const std::int32_t dq = tape.gradient_tensor(in.q);
    const std::int32_t dk = tape.gradient_tensor(in.k);
    const std::int32_t dv = tape.gradient_tensor(in.v);
    Op back = forward;
    back.kind = OpKind::attention_backward;
    back.name = "attn.flash.backward";
    back.flops = forward.flops * 2.5;
    back.read = forward.read + out.bytes() * 2;
    back.written = forward.read;
    back.launches = 3;
    tape.emit(back, {in.q.tensor, in.k.tensor, in.v.tensor, out.tensor, statistics, grad}, {dq, dk, dv});
    tape.give_gradient(in.q, dq);
    tape.give_gradient(in.k, dk);
    tape.give_gradient(in.v, dv);
  });
  return out;
}

// x cos + rotate_half(x) sin. As the module code writes it: two products, a negation, a concatenation and a
// sum; with flash attention one kernel, as the libraries that ship it have.
Value rotary(EagerTape& tape, const Value& x, const std::string& name) {
  const bool fused = tape.context().training.attention == AttentionKernel::flash;
  const Value y = tape.value(name, x.elements, x.dtype);
  const Bytes half(x.bytes().count() / 2);
  Op op = fused ? memory_op(OpRole::position, name, x.bytes(), x.bytes())
                : memory_op(OpRole::position, name, x.bytes() * 5 + half, x.bytes() * 4 + half, 5);
  tape.emit(op, {x.tensor}, {y.tensor});
  tape.on_backward([&tape, x, y, name, op, fused, half]() mutable {
    const std::int32_t dx = tape.gradient_tensor(x);
    // The slices' gradients are zero-filled and copied into before they are added.
    if (!fused) op = memory_op(OpRole::position, name, x.bytes() * 7 + half, x.bytes() * 7 + half, 9);
    op.name = name + ".backward";
    tape.emit(op, {tape.gradient(y)}, {dx});
    tape.give_gradient(x, dx);
  });
  return y;
}

}  // namespace

Value attention(EagerTape& tape, const LayerSizes& s, const Value& x) {
  const TransformerConfig& m = tape.context().model;
  Value h = x;
  if (s.megatron) h = enter_tensor_parallel(tape, s, cast(tape, x, s.compute, "attn.input_cast"), "attn");
  QueryKeyValue qkv = m.fused_qkv ? project_fused(tape, s, h) : project_separate(tape, s, h);
  const bool eager = tape.context().training.attention == AttentionKernel::eager;
  const bool rotates = m.positions == PositionKind::rotary;
  qkv.q = split_heads(tape, qkv.q, eager, "attn.q");
  // The gradient of k^T is in the right layout already, unless it was rotated or summed over query heads.
  qkv.k = split_heads(tape, qkv.k, eager && (rotates || m.kv_heads != m.heads), "attn.k");
  qkv.v = split_heads(tape, qkv.v, eager, "attn.v");
  if (rotates) {
    qkv.q = rotary(tape, qkv.q, "attn.q.rotary");
    qkv.k = rotary(tape, qkv.k, "attn.k.rotary");
  }
  tape.hold(x);
  tape.hold(qkv.q);
  if (!eager || m.kv_heads == m.heads) {  // else their variables hold the repeated heads
    tape.hold(qkv.k);
    tape.hold(qkv.v);
  }
  const bool recompute = tape.context().training.recompute == Recompute::selective;
  if (recompute) tape.begin_recompute();
  const Value core = tape.context().training.attention == AttentionKernel::flash ? flash_core(tape, s, qkv)
                                                                                 : eager_core(tape, s, qkv);
  if (recompute) tape.end_recompute();
  const Split split = s.megatron ? Split::row : s.gather ? Split::column : Split::none;
  const Value y =
      linear(tape, s, core, m.heads * m.head_dim, s.hidden, m.attention_out_bias, split, "attn.proj");
  if (!s.megatron) return y;
  return row_bias(tape, leave_tensor_parallel(tape, s, y, "attn"), s.hidden, m.attention_out_bias,
                  "attn.proj");
}

}  // namespace foretrain
