#include "model/ops/optimizer.h"

#include <algorithm>

namespace foretrain {
namespace {

// The most tensors one launch takes, by the number of lists that the kernel walks together.
constexpr std::int64_t kTensorsPerLaunch[] = {110, 64, 48, 36, 30};

Op pass(OpRole role, const char* name, Bytes read, Bytes written, std::int64_t elements, std::int64_t tensors,
        int lists, double flops_per_element) {
  Op op;
  op.role = role;
  op.name = name;
  op.read = read;
  op.written = written;
  op.flops = Flops(flops_per_element * static_cast<double>(elements));
  op.launches = multi_tensor_launches(elements, tensors, kTensorsPerLaunch[lists - 1]);
  return op;
}

}  // namespace

int multi_tensor_launches(std::int64_t elements, std::int64_t tensors, std::int64_t per_launch) {
  constexpr std::int64_t kChunk = 65536;
  constexpr std::int64_t kBlocks = 320;
  const std::int64_t chunks = std::max<std::int64_t>(1, (elements + kChunk - 1) / kChunk);
  const std::int64_t by_chunks = (chunks + kBlocks - 1) / kBlocks;
  const std::int64_t by_tensors = (tensors + per_launch - 1) / per_launch;
  return static_cast<int>(std::max({std::int64_t{1}, by_chunks, by_tensors}));
}

Bytes optimizer_state_bytes(const TrainingSpec& training, std::int64_t elements, DType stored) {
  const std::int64_t moments = training.optimizer == Optimizer::sgd ? 0 : 2;
  const std::int64_t master = size_of(stored) < 4 ? 1 : 0;
  return Bytes(elements * 4 * (moments + master));
}

Bytes optimizer_workspace_bytes(const TrainingSpec& training, std::int64_t elements, DType stored) {
  const std::int64_t wide_gradient = size_of(stored) < 4 ? 1 : 0;  // the gradient in fp32
  if (training.optimizer == Optimizer::adamw_foreach) return Bytes(elements * 4 * (1 + wide_gradient));
  return Bytes(0);
}

std::vector<Op> optimizer_ops(const TrainingSpec& training, std::int64_t elements, std::int64_t tensors,
                              DType stored) {
  std::vector<Op> ops;
  if (elements <= 0) return ops;
  const Bytes wide(elements * 4);
  const Bytes narrow(elements * size_of(stored));
  const bool master = size_of(stored) < 4;
  const auto add = [&](const char* name, std::int64_t reads, std::int64_t writes, int lists, double flops) {
    ops.push_back(
        pass(OpRole::optimizer, name, wide * reads, wide * writes, elements, tensors, lists, flops));
  };
  switch (training.optimizer) {
    case Optimizer::sgd:
      ops.push_back(pass(OpRole::optimizer, "sgd", (master ? wide : narrow) + narrow,
                         master ? wide + narrow : narrow, elements, tensors, 2, 2));
      return ops;
    case Optimizer::adamw_fused:
      ops.push_back(pass(OpRole::optimizer, "adamw.fused", wide * 3 + narrow,
                         wide * 3 + (master ? narrow : Bytes(0)), elements, tensors, 4, 15));
      return ops;
    case Optimizer::adamw_foreach:
      break;
  }
  if (master)
    ops.push_back(pass(OpRole::optimizer, "adamw.gradient_cast", narrow, wide, elements, tensors, 2, 0));
  add("adamw.weight_decay", 1, 1, 1, 1);         // p *= 1 - lr wd
  add("adamw.first_moment", 2, 1, 2, 3);         // m = lerp(m, g, 1 - b1)
  add("adamw.second_moment_decay", 1, 1, 1, 1);  // v *= b2
  add("adamw.second_moment", 2, 1, 3, 3);        // v += (1 - b2) g g
  add("adamw.sqrt", 1, 1, 2, 1);                 // t = sqrt(v)
  add("adamw.bias_correction", 1, 1, 1, 1);      // t /= sqrt(1 - b2^n)
  add("adamw.epsilon", 1, 1, 1, 1);              // t += eps
  add("adamw.update", 3, 1, 3, 3);               // p -= step m / t
  if (master)
    ops.push_back(pass(OpRole::optimizer, "adamw.parameter_cast", wide, narrow, elements, tensors, 2, 0));
  return ops;
}

std::vector<Op> unscale_ops(std::int64_t elements, std::int64_t tensors, DType gradient) {
  const Bytes bytes(elements * size_of(gradient));
  Op prepare;  // the reciprocal of the scale, in double precision, and the flag of what was found
  prepare.role = OpRole::gradient_scaling;
  prepare.name = "unscale.prepare";
  prepare.read = prepare.written = Bytes(16);
  prepare.launches = 4;
  return {prepare, pass(OpRole::gradient_scaling, "unscale", bytes, bytes, elements, tensors, 1, 1)};
}

std::vector<Op> grad_norm_ops(std::int64_t elements, std::int64_t tensors, DType gradient) {
  std::vector<Op> ops{pass(OpRole::gradient_clipping, "grad_norm.per_tensor",
                           Bytes(elements * size_of(gradient)), Bytes(4 * tensors), elements, tensors, 1, 2)};
  Op total;
  total.role = OpRole::gradient_clipping;
  total.name = "grad_norm.total";
  total.read = Bytes(4 * tensors);
  total.written = Bytes(4);
  total.launches = 2;
  ops.push_back(total);
  return ops;
}

std::vector<Op> clip_ops(std::int64_t elements, std::int64_t tensors, DType gradient) {
  Op factor;
  factor.role = OpRole::gradient_clipping;
  factor.name = "clip.factor";
  factor.read = factor.written = Bytes(4);
  factor.launches = 3;  // max_norm / (norm + eps), clamp
  const Bytes bytes(elements * size_of(gradient));
  return {factor, pass(OpRole::gradient_clipping, "clip.scale", bytes, bytes, elements, tensors, 1, 1)};
}

}  // namespace foretrain
