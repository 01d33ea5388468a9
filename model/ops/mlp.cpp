#include "model/ops/layers.h"

namespace foretrain {
namespace {

// y = f(x), saving x; f' reads x and the gradient.
Value unary_activation(EagerTape& tape, const Value& x, const std::string& name) {
  const Value y = tape.value(name, x.elements, x.dtype);
  tape.emit(memory_op(OpRole::activation, name, x.bytes(), y.bytes()), {x.tensor}, {y.tensor});
  tape.on_backward([&tape, x, y, name] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t dx = tape.gradient_tensor(x);
    tape.emit(memory_op(OpRole::activation, name + ".backward", x.bytes() * 2, x.bytes()), {x.tensor, grad},
              {dx});
    tape.give_gradient(x, dx);
  });
  return y;
}

Value multiply(EagerTape& tape, const Value& a, const Value& b, const std::string& name) {
  const Value y = tape.value(name, a.elements, a.dtype);
  tape.emit(memory_op(OpRole::activation, name, a.bytes() * 2, y.bytes()), {a.tensor, b.tensor}, {y.tensor});
  tape.on_backward([&tape, a, b, y, name] {
    const std::int32_t grad = tape.gradient(y);
    const std::int32_t da = tape.gradient_tensor(a);
    const std::int32_t db = tape.gradient_tensor(b);
    tape.emit(memory_op(OpRole::activation, name + ".backward", a.bytes() * 4, a.bytes() * 2, 2),
              {a.tensor, b.tensor, grad}, {da, db});
    tape.give_gradient(a, da);
    tape.give_gradient(b, db);
  });
  return y;
}

}  // namespace

Value mlp(EagerTape& tape, const LayerSizes& s, const Value& x) {
  const TransformerConfig& model = tape.context().model;
  const Split first = s.tp > 1 ? Split::column : Split::none;
  const Split second = s.megatron ? Split::row : s.gather ? Split::column : Split::none;
  tape.hold(x);
  Value h = x;
  if (s.megatron) h = enter_tensor_parallel(tape, s, cast(tape, x, s.compute, "mlp.input_cast"), "mlp");
  Value y;
  std::string last;
  if (model.activation == Activation::swiglu) {
    const Value gate = linear(tape, s, h, s.hidden, model.ffn_hidden, model.mlp_bias, first, "mlp.gate");
    const Value up = linear(tape, s, h, s.hidden, model.ffn_hidden, model.mlp_bias, first, "mlp.up");
    y = multiply(tape, unary_activation(tape, gate, "mlp.silu"), up, "mlp.product");
    last = "mlp.down";
  } else {
    y = unary_activation(
        tape, linear(tape, s, h, s.hidden, model.ffn_hidden, model.mlp_bias, first, "mlp.fc1"), "mlp.gelu");
    last = "mlp.fc2";
  }
  y = linear(tape, s, y, model.ffn_hidden, s.hidden, model.mlp_bias, second, last);
  if (!s.megatron) return y;
  return row_bias(tape, leave_tensor_parallel(tape, s, y, "mlp"), s.hidden, model.mlp_bias, last);
}

}  // namespace foretrain
