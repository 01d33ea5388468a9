#include "model/ops/layers.h"

namespace foretrain {
namespace {

// One kernel that saves its input and a few numbers a row: LayerNorm, and RMSNorm where it is fused.
Value fused_norm(EagerTape& tape, const LayerSizes& s, const Value& x, const std::string& name) {
  const TransformerConfig& model = tape.context().model;
  const bool bias = model.norm == NormKind::layer_norm && model.norm_bias;
  const std::int64_t per_row = model.norm == NormKind::layer_norm ? 2 : 1;
  const Value y = tape.value(name, x.elements, s.norm);
  const std::int32_t statistics =
      tape.tensor(name + ".statistics", per_row * x.elements / s.hidden, DType::fp32);
  tape.emit(memory_op(OpRole::norm, name, x.bytes(), y.bytes()), {x.tensor}, {y.tensor, statistics});
  tape.on_backward([&tape, x, y, name, statistics, bias] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t dx = tape.gradient_tensor(x);
    tape.emit(memory_op(OpRole::norm, name + ".input_gradient", x.bytes() + y.bytes(), x.bytes()),
              {x.tensor, grad, statistics}, {dx});
    tape.set_part(EagerTape::Part::weight);
    tape.emit(memory_op(OpRole::norm, name + ".weight_gradient", x.bytes() + y.bytes(), Bytes(0)),
              {x.tensor, grad, statistics});
    tape.completes(name + ".weight");
    if (bias) tape.completes(name + ".bias");
    tape.set_part(EagerTape::Part::both);
    tape.give_gradient(x, dx);
  });
  return y;
}

// weight * (x * rsqrt(mean(x^2) + eps)) as the Llama modules write it: in fp32, kernel by kernel.
Value written_out_rms_norm(EagerTape& tape, const LayerSizes& s, const Value& given,
                           const std::string& name) {
  const Value x = cast(tape, given, DType::fp32, name + ".input_cast");
  const std::int64_t rows = x.elements / s.hidden;
  const Bytes row_bytes(4 * rows);
  const auto emit = [&tape, &name](const char* step, Bytes read, Bytes written,
                                   std::vector<std::int32_t> uses, std::vector<std::int32_t> makes = {}) {
    tape.emit(memory_op(OpRole::norm, name + step, read, written), std::move(uses), std::move(makes));
  };
  const std::int32_t square = tape.tensor(name + ".square", x.elements, DType::fp32);
  const std::int32_t mean = tape.tensor(name + ".mean", rows, DType::fp32);
  const std::int32_t sum = tape.tensor(name + ".mean_plus_epsilon", rows, DType::fp32);
  const std::int32_t scale = tape.tensor(name + ".rsqrt", rows, DType::fp32);
  const Value normed = tape.value(name + ".normed", x.elements, DType::fp32);
  emit(".square", x.bytes(), x.bytes(), {x.tensor}, {square});
  emit(".mean", x.bytes(), row_bytes, {square}, {mean});
  emit(".epsilon", row_bytes, row_bytes, {mean}, {sum});
  emit(".rsqrt", row_bytes, row_bytes, {sum}, {scale});
  emit(".scale", x.bytes() + row_bytes, x.bytes(), {x.tensor, scale}, {normed.tensor});
  tape.on_backward([&tape, x, normed, scale, row_bytes, rows, name] {
    const std::int32_t grad = tape.gradient(normed);
    const auto step = [&](const char* what, Bytes read, Bytes written, std::vector<std::int32_t> uses,
                          std::int64_t elements) {
      const std::int32_t made = tape.tensor(name + what, elements, DType::fp32);
      tape.emit(memory_op(OpRole::norm, name + what, read, written), std::move(uses), {made});
      return made;
    };
    const Bytes all = x.bytes();
    const std::int64_t n = x.elements;
    const std::int32_t product = step(".scale.backward_scale", all * 2, all, {grad, x.tensor}, n);
    const std::int32_t direct = step(".scale.backward_input", all + row_bytes, all, {grad, scale}, n);
    const std::int32_t of_scale = step(".scale.backward_sum", all, row_bytes, {product}, rows);
    const std::int32_t cube = step(".rsqrt.backward_cube", row_bytes, row_bytes, {scale}, rows);
    const std::int32_t half = step(".rsqrt.backward_half", row_bytes, row_bytes, {of_scale}, rows);
    const std::int32_t of_sum = step(".rsqrt.backward", row_bytes * 2, row_bytes, {half, cube}, rows);
    const std::int32_t of_square = step(".mean.backward", row_bytes, all, {of_sum}, n);
    const std::int32_t power = step(".square.backward_power", all, all, {x.tensor}, n);
    const std::int32_t twice = step(".square.backward_twice", all, all, {power}, n);
    const std::int32_t indirect = step(".square.backward", all * 2, all, {of_square, twice}, n);
    const std::int32_t dx = step(".gradient_add", all * 2, all, {direct, indirect}, n);
    tape.give_gradient(x, dx);
  });
  const Value narrow = cast(tape, normed, given.dtype, name + ".output_cast");
  const Value y = tape.value(name, x.elements, s.norm);
  emit(".weight", narrow.bytes(), y.bytes(), {narrow.tensor}, {y.tensor});
  tape.on_backward([&tape, narrow, y, name] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t dx = tape.gradient_tensor(narrow);
    tape.emit(memory_op(OpRole::norm, name + ".weight.backward_input", y.bytes(), narrow.bytes()), {grad},
              {dx});
    tape.set_part(EagerTape::Part::weight);
    const std::int32_t product = tape.tensor(name + ".weight.product", y.elements, y.dtype);
    tape.emit(memory_op(OpRole::norm, name + ".weight.backward_product", y.bytes() * 2, y.bytes()),
              {grad, narrow.tensor}, {product});
    tape.emit(memory_op(OpRole::norm, name + ".weight_gradient", y.bytes(), Bytes(0)), {product});
    tape.completes(name + ".weight");
    tape.set_part(EagerTape::Part::both);
    tape.give_gradient(narrow, dx);
  });
  return y;
}

}  // namespace

Value norm(EagerTape& tape, const LayerSizes& s, const Value& x, const std::string& name) {
  const bool fused = tape.context().model.norm == NormKind::layer_norm ||
                     tape.context().training.attention == AttentionKernel::flash;
  return fused ? fused_norm(tape, s, x, name) : written_out_rms_norm(tape, s, x, name);
}

}  // namespace foretrain
