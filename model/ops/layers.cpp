#include "model/ops/layers.h"

#include <utility>

namespace foretrain {
namespace {

Bytes bytes_of(std::int64_t elements, DType dtype) { return Bytes(elements * size_of(dtype)); }

bool tensor_cores(const TrainingSpec& training) { return training.precision != Precision::fp32; }

Op matmul_op(const EagerTape& tape, std::string name, std::int64_t m, std::int64_t n, std::int64_t k,
             DType dtype, MatmulLayout layout, std::int64_t batch = 1) {
  Op op;
  op.kind = OpKind::matmul;
  op.role = OpRole::matmul;
  op.name = std::move(name);
  op.matmul = MatmulShape{batch, m, n, k, dtype, dtype, tensor_cores(tape.context().training), layout};
  op.read = bytes_of(batch * (m * k + k * n), dtype);
  op.written = bytes_of(batch * m * n, dtype);
  op.flops = Flops(2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
                   static_cast<double>(k));
  return op;
}

}  // namespace

LayerSizes::LayerSizes(const ExpansionContext& c) {
  const TransformerConfig& m = c.model;
  batch = c.training.micro_batch_size;
  sequence = c.training.sequence_length;
  tokens = batch * sequence;
  tp = c.tp;
  megatron = tp > 1 && c.tp_kind == TensorParallelKind::megatron;
  gather = tp > 1 && c.tp_kind == TensorParallelKind::column_gather;
  sequence_parallel = megatron && c.sequence_parallel;
  shard_tokens = sequence_parallel ? tokens / tp : tokens;
  hidden = m.hidden;
  const std::int64_t split = megatron ? tp : 1;
  heads = m.heads / split;
  kv_heads = std::max<std::int64_t>(1, m.kv_heads / split);
  head_dim = m.head_dim;
  q_width = heads * head_dim;
  kv_width = kv_heads * head_dim;
  ffn = m.ffn_hidden / split;
  compute = compute_dtype(c.training.precision);
  stream = parameter_dtype(c.training.precision);
  norm = is_amp(c.training.precision) ? DType::fp32 : compute;
}

Op memory_op(OpRole role, std::string name, Bytes read, Bytes written, int launches) {
  Op op;
  op.role = role;
  op.name = std::move(name);
  op.read = read;
  op.written = written;
  op.launches = launches;
  return op;
}

void collective(EagerTape& tape, CollectiveKind kind, Bytes bytes, DType dtype, const std::string& name,
                std::int32_t uses, std::int32_t makes) {
  Op op;
  op.kind = OpKind::collective;
  op.role = OpRole::collective;
  op.name = name;
  op.collective = CollectiveShape{kind, mesh_dims(MeshDim::tp), bytes, dtype};
  std::vector<std::int32_t> made;
  if (makes >= 0) made.push_back(makes);
  tape.emit(std::move(op), {uses}, std::move(made));
}

Value cast(EagerTape& tape, const Value& x, DType dtype, const std::string& name) {
  if (x.dtype == dtype) return x;
  const Value y = tape.value(name, x.elements, dtype);
  tape.emit(memory_op(OpRole::cast, name, x.bytes(), y.bytes()), {x.tensor}, {y.tensor});
  tape.on_backward([&tape, x, y, name] {
    const std::int32_t grad = tape.gradient(y);
    if (grad == kNoTensor) return;
    const std::int32_t back = tape.gradient_tensor(x);
    tape.emit(memory_op(OpRole::cast, name + ".backward", y.bytes(), x.bytes()), {grad}, {back});
    tape.give_gradient(x, back);
  });
  return y;
}

Value dropout(EagerTape& tape, const Value& x, double rate, const std::string& name) {
  if (rate <= 0 || !tape.context().training.dropout) return x;
  const Value y = tape.value(name, x.elements, x.dtype);
  const std::int32_t mask = tape.tensor(name + ".mask", x.elements, DType::boolean);
  tape.emit(memory_op(OpRole::dropout, name, x.bytes(), y.bytes() + Bytes(x.elements)), {x.tensor},
            {y.tensor, mask});
  tape.on_backward([&tape, x, y, mask, name] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t dx = tape.gradient_tensor(x);
    tape.emit(memory_op(OpRole::dropout, name + ".backward", y.bytes() + Bytes(x.elements), x.bytes()),
              {grad, mask}, {dx});
    tape.give_gradient(x, dx);
  });
  return y;
}

Value residual_add(EagerTape& tape, const Value& x, const Value& y, const std::string& name) {
  const DType wide = size_of(x.dtype) >= size_of(y.dtype) ? x.dtype : y.dtype;
  const Value z = tape.value(name, x.elements, wide);
  tape.emit(memory_op(OpRole::residual, name, x.bytes() + y.bytes(), z.bytes()), {x.tensor, y.tensor},
            {z.tensor});
  tape.on_backward([&tape, x, y, z, name] {
    const std::int32_t grad = tape.gradient(z);
    for (const Value& side : {x, y}) {
      if (side.dtype == z.dtype) {
        tape.give_gradient(side, grad);
        continue;
      }
      const std::int32_t narrow = tape.gradient_tensor(side);
      tape.emit(memory_op(OpRole::cast, name + ".gradient_cast", z.bytes(), side.bytes()), {grad}, {narrow});
      tape.give_gradient(side, narrow);
    }
  });
  return z;
}

namespace {

// The all_gather of a column-split output into a list of tensors and their concatenation, as
// torch.distributed.all_gather and torch.cat do it: into one flat buffer, out into the list, together again.
Value gather_columns(EagerTape& tape, const LayerSizes& s, const Value& part, std::int64_t out,
                     const std::string& name) {
  const std::int64_t elements = s.tokens * out;
  const std::int32_t flat = tape.tensor(name + ".flat", elements, part.dtype, MemoryClass::communication);
  const std::int32_t list = tape.tensor(name + ".list", elements, part.dtype, MemoryClass::communication);
  const Value whole = tape.value(name + ".gathered", elements, part.dtype);
  collective(tape, CollectiveKind::all_gather, whole.bytes(), part.dtype, name + ".all_gather", part.tensor,
             flat);
  tape.emit(memory_op(OpRole::copy, name + ".unflatten", whole.bytes(), whole.bytes(), s.tp), {flat}, {list});
  tape.emit(memory_op(OpRole::copy, name + ".concatenate", whole.bytes(), whole.bytes()), {list},
            {whole.tensor});
  tape.on_backward([&tape, part, whole, name] {
    const std::int32_t grad = tape.gradient(whole);
    const std::int32_t mine = tape.gradient_tensor(part);
    tape.emit(memory_op(OpRole::copy, name + ".slice", part.bytes(), part.bytes()), {grad}, {mine});
    tape.give_gradient(part, mine);
  });
  return whole;
}

// Autocast's copy of a parameter in the compute dtype, whose gradient is cast back to the stored one. A value
// without a tensor when no copy is needed.
Value cast_parameter(EagerTape& tape, std::int64_t elements, DType dtype, const std::string& name) {
  const DType stored = parameter_dtype(tape.context().training.precision);
  if (stored == dtype) return tape.untracked(elements, dtype);
  const Value copy = tape.value(name + ".cast", elements, dtype);
  const Bytes wide = bytes_of(elements, stored);
  tape.emit(memory_op(OpRole::cast, name + ".cast", wide, copy.bytes()), {}, {copy.tensor});
  tape.on_backward([&tape, copy, name, wide] {
    tape.set_part(EagerTape::Part::weight);
    tape.emit(memory_op(OpRole::cast, name + ".gradient_cast", copy.bytes(), wide), {tape.gradient(copy)});
    tape.completes(name);
    tape.set_part(EagerTape::Part::both);
  });
  return copy;
}

// The gradient of a parameter, made by `op`: the parameter's own, or that of its cast.
void parameter_gradient(EagerTape& tape, Op op, const Value& parameter, std::vector<std::int32_t> uses,
                        const std::string& name) {
  if (parameter.tensor == kNoTensor) {
    tape.emit(std::move(op), std::move(uses));
    tape.completes(name);
    return;
  }
  const std::int32_t gradient =
      tape.tensor(name + ".gradient", parameter.elements, parameter.dtype, MemoryClass::gradients);
  tape.emit(std::move(op), std::move(uses), {gradient});
  tape.give_gradient(parameter, gradient);
}

}  // namespace

Value linear(EagerTape& tape, const LayerSizes& s, const Value& x, std::int64_t in, std::int64_t out,
             bool bias, Split split, const std::string& name) {
  const std::int64_t ranks = split == Split::none ? 1 : s.tp;
  const std::int64_t local_in = split == Split::row ? in / ranks : in;
  const std::int64_t local_out = split == Split::column ? (out + ranks - 1) / ranks : out;
  const Value input = split == Split::column && s.gather ? enter_tensor_parallel(tape, s, x, name) : x;
  const bool bias_here = bias && (split != Split::row || !s.megatron);
  // F.linear under autocast casts its arguments from the last to the first.
  const Value bias_value = bias_here ? cast_parameter(tape, local_out, s.compute, name + ".bias") : Value{};
  const Value weight = cast_parameter(tape, local_in * local_out, s.compute, name + ".weight");
  const Value a = cast(tape, input, s.compute, name + ".input_cast");
  const std::int64_t rows = a.elements / local_in;
  const Value y = tape.value(name, rows * local_out, s.compute);
  tape.emit(matmul_op(tape, name, rows, local_out, local_in, s.compute, MatmulLayout::tn),
            {a.tensor, weight.tensor, bias_value.tensor}, {y.tensor});
  tape.on_backward([&tape, &s, a, y, weight, bias_value, name, rows, local_in, local_out, bias_here] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t da = tape.gradient_tensor(a);
    const auto input_gradient = [&] {
      tape.set_part(EagerTape::Part::input);
      tape.emit(
          matmul_op(tape, name + ".input_gradient", rows, local_in, local_out, s.compute, MatmulLayout::nn),
          {grad, weight.tensor}, {da});
    };
    // Sequence parallel: the gathered input is not kept, but gathered again.
    const std::int32_t kept = tape.gathered_again(a);
    // AddmmBackward makes the input gradient first, MmBackward (no bias) the weight gradient.
    if (bias_here) input_gradient();
    tape.set_part(EagerTape::Part::weight);
    parameter_gradient(
        tape,
        matmul_op(tape, name + ".weight_gradient", local_out, local_in, rows, s.compute, MatmulLayout::nt),
        weight, {grad, kept}, name + ".weight");
    if (bias_here) {
      parameter_gradient(
          tape, memory_op(OpRole::bias_gradient, name + ".bias_gradient", y.bytes(), bias_value.bytes()),
          bias_value, {grad}, name + ".bias");
    } else {
      input_gradient();
    }
    tape.set_part(EagerTape::Part::both);
    tape.give_gradient(a, da);
  });
  return split == Split::column && s.gather ? gather_columns(tape, s, y, out, name) : y;
}

Value enter_tensor_parallel(EagerTape& tape, const LayerSizes& s, const Value& x, const std::string& name) {
  if (s.tp == 1) return x;
  if (!s.sequence_parallel) {
    // A value of its own, since the gradient of x is complete only after the reduction.
    Value y = tape.input(x.elements, x.dtype);
    y.tensor = x.tensor;
    tape.on_backward([&tape, x, y, name] {
      const std::int32_t grad = tape.gradient(y);
      collective(tape, CollectiveKind::all_reduce, x.bytes(), x.dtype, name + ".all_reduce", grad);
      tape.give_gradient(x, grad);
    });
    return y;
  }
  const Value y = tape.value(name + ".gathered", x.elements * s.tp, x.dtype);
  collective(tape, CollectiveKind::all_gather, y.bytes(), x.dtype, name + ".all_gather", x.tensor, y.tensor);
  tape.gather_again(y, [&tape, x, y, name] {
    const std::int32_t again =
        tape.tensor(name + ".gathered_again", y.elements, y.dtype, MemoryClass::communication);
    collective(tape, CollectiveKind::all_gather, y.bytes(), x.dtype, name + ".all_gather_again", x.tensor,
               again);
    return again;
  });
  tape.on_backward([&tape, x, y, name] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t part = tape.gradient_tensor(x);
    collective(tape, CollectiveKind::reduce_scatter, y.bytes(), x.dtype, name + ".reduce_scatter", grad,
               part);
    tape.give_gradient(x, part);
  });
  return y;
}

Value leave_tensor_parallel(EagerTape& tape, const LayerSizes& s, const Value& x, const std::string& name) {
  if (s.tp == 1) return x;
  if (!s.sequence_parallel) {
    collective(tape, CollectiveKind::all_reduce, x.bytes(), x.dtype, name + ".all_reduce", x.tensor);
    return x;
  }
  const Value y = tape.value(name + ".scattered", x.elements / s.tp, x.dtype);
  collective(tape, CollectiveKind::reduce_scatter, x.bytes(), x.dtype, name + ".reduce_scatter", x.tensor,
             y.tensor);
  tape.on_backward([&tape, x, y, name] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t whole = tape.gradient_tensor(x);
    collective(tape, CollectiveKind::all_gather, x.bytes(), x.dtype, name + ".all_gather", grad, whole);
    tape.give_gradient(x, whole);
  });
  return y;
}

Value row_bias(EagerTape& tape, const Value& x, std::int64_t width, bool bias, const std::string& name) {
  if (!bias) return x;
  const Value y = tape.value(name + ".biased", x.elements, x.dtype);
  tape.emit(memory_op(OpRole::residual, name + ".bias", x.bytes(), y.bytes()), {x.tensor}, {y.tensor});
  tape.on_backward([&tape, x, y, width, name] {
    const std::int32_t grad = tape.gradient(y);
    const DType stored = parameter_dtype(tape.context().training.precision);
    tape.set_part(EagerTape::Part::weight);
    tape.emit(memory_op(OpRole::bias_gradient, name + ".bias_gradient", y.bytes(), bytes_of(width, stored)),
              {grad});
    tape.completes(name + ".bias");
    tape.set_part(EagerTape::Part::both);
    tape.give_gradient(x, grad);
  });
  return y;
}

}  // namespace foretrain
