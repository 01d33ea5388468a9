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

// y with `elements`, made from x by a kernel that reads x and writes y; its backward does the reverse.
Value copy_op(EagerTape& tape, OpRole role, const Value& x, std::int64_t elements, const std::string& name,
              int launches = 1, std::int64_t passes = 1) {
  const Value y = tape.value(name, elements, x.dtype);
  const Bytes moved = bytes_of(elements * passes, x.dtype);
  tape.emit(memory_op(role, name, moved, moved, launches), {x.tensor}, {y.tensor});
  tape.on_backward([&tape, role, x, y, name, moved, launches] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t dx = tape.gradient_tensor(x);
    tape.emit(memory_op(role, name + ".backward", moved, moved, launches), {grad}, {dx});
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
  const std::int64_t width = (m.heads + 2 * m.kv_heads) * m.head_dim;
  const Value qkv =
      linear(tape, s, x, s.hidden, width, m.qkv_bias, s.tp > 1 ? Split::column : Split::none, "attn.qkv");
  const auto view = [&](std::int64_t elements) {
    Value part = tape.input(elements, qkv.dtype);
    part.tensor = qkv.tensor;
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
  const Value input = s.gather ? x : cast(tape, x, s.compute, "attn.input_cast");
  const Value q = linear(tape, s, input, s.hidden, m.heads * m.head_dim, m.qkv_bias, split, "attn.q");
  const Value k = linear(tape, s, input, s.hidden, m.kv_heads * m.head_dim, m.qkv_bias, split, "attn.k");
  const Value v = linear(tape, s, input, s.hidden, m.kv_heads * m.head_dim, m.qkv_bias, split, "attn.v");
  return {q, k, v};
}

// softmax(q k^T / sqrt(d)) v with the scores in memory, as the module code writes it. Under fp16 autocast
// softmax reads fp16 and writes fp32 in one kernel; under bf16 autocast the cast is a kernel of its own.
Value eager_core(EagerTape& tape, const LayerSizes& s, const QueryKeyValue& in) {
  const TransformerConfig& model = tape.context().model;
  const std::int64_t scores = s.batch * s.heads * s.sequence * s.sequence;
  // torch.matmul makes the strided views contiguous before bmm.
  const Value q = copy_op(tape, OpRole::copy, in.q, in.q.elements, "attn.q.contiguous");
  const Value k = copy_op(tape, OpRole::copy, in.k, s.tokens * s.q_width, "attn.k.contiguous");
  const Value v = copy_op(tape, OpRole::copy, in.v, s.tokens * s.q_width, "attn.v.contiguous");

  const Value raw = tape.value("attn.scores", scores, s.compute);
  tape.emit(batched_matmul(tape, s, "attn.scores", s.sequence, s.sequence, s.head_dim, MatmulLayout::tn),
            {q.tensor, k.tensor}, {raw.tensor});
  tape.on_backward([&tape, &s, q, k, raw] {
    const std::int32_t grad = tape.gradient(raw);
    const std::int32_t dq = tape.gradient_tensor(q);
    const std::int32_t dk = tape.gradient_tensor(k);
    tape.emit(batched_matmul(tape, s, "attn.scores.q_gradient", s.sequence, s.head_dim, s.sequence,
                             MatmulLayout::nn),
              {grad, k.tensor}, {dq});
    tape.emit(batched_matmul(tape, s, "attn.scores.k_gradient", s.sequence, s.head_dim, s.sequence,
                             MatmulLayout::nt),
              {grad, q.tensor}, {dk});
    tape.give_gradient(q, dq);
    tape.give_gradient(k, dk);
  });
  const Value scaled = copy_op(tape, OpRole::softmax, raw, scores, "attn.scale");
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
  const Value p = cast(tape, dropped, s.compute, "attn.weights_cast");
  const Value out = tape.value("attn.context", s.tokens * s.q_width, s.compute);
  tape.emit(batched_matmul(tape, s, "attn.context", s.sequence, s.head_dim, s.sequence, MatmulLayout::nn),
            {p.tensor, v.tensor}, {out.tensor});
  tape.on_backward([&tape, &s, p, v, out] {
    const std::int32_t grad = tape.gradient(out);
    const std::int32_t dp = tape.gradient_tensor(p);
    const std::int32_t dv = tape.gradient_tensor(v);
    tape.emit(batched_matmul(tape, s, "attn.context.weights_gradient", s.sequence, s.sequence, s.head_dim,
                             MatmulLayout::tn),
              {grad, v.tensor}, {dp});
    tape.emit(batched_matmul(tape, s, "attn.context.v_gradient", s.sequence, s.head_dim, s.sequence,
                             MatmulLayout::nt),
              {grad, p.tensor}, {dv});
    tape.give_gradient(p, dp);
    tape.give_gradient(v, dv);
  });
  return copy_op(tape, OpRole::copy, out, out.elements, "attn.context.contiguous");
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

}  // namespace

Value attention(EagerTape& tape, const LayerSizes& s, const Value& x) {
  const TransformerConfig& m = tape.context().model;
  Value h = x;
  if (s.megatron) h = enter_tensor_parallel(tape, s, cast(tape, x, s.compute, "attn.input_cast"), "attn");
  QueryKeyValue qkv = m.fused_qkv ? project_fused(tape, s, h) : project_separate(tape, s, h);
  if (m.positions == PositionKind::rotary) {
    // x cos + rotate_half(x) sin: two products, a negation, a concatenation and a sum.
    qkv.q = copy_op(tape, OpRole::position, qkv.q, qkv.q.elements, "attn.q.rotary", 5, 4);
    qkv.k = copy_op(tape, OpRole::position, qkv.k, qkv.k.elements, "attn.k.rotary", 5, 4);
  }
  const bool recompute = tape.context().training.recompute == Recompute::selective;
  if (recompute) tape.begin_recompute();
  const Value core = tape.context().training.attention == AttentionKernel::flash ? flash_core(tape, s, qkv)
                                                                                 : eager_core(tape, s, qkv);
  if (recompute) tape.end_recompute();
  const Split split = s.megatron ? Split::row : s.gather ? Split::column : Split::none;
  const Value y =
      linear(tape, s, core, m.heads * m.head_dim, s.hidden, m.attention_out_bias, split, "attn.proj");
  return s.megatron ? leave_tensor_parallel(tape, s, y, "attn") : y;
}

}  // namespace foretrain
