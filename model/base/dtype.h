// Number formats and training precisions.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/base/units.h"

namespace foretrain {

enum class DType : std::uint8_t { fp32, fp16, bf16, int64, int32, boolean };

constexpr std::int64_t size_of(DType type) {
  switch (type) {
    case DType::fp32:
    case DType::int32:
      return 4;
    case DType::fp16:
    case DType::bf16:
      return 2;
    case DType::int64:
      return 8;
    case DType::boolean:
      return 1;
  }
  return 0;
}
constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::fp32:
      return "fp32";
    case DType::fp16:
      return "fp16";
    case DType::bf16:
      return "bf16";
    case DType::int64:
      return "int64";
    case DType::int32:
      return "int32";
    case DType::boolean:
      return "bool";
  }
  return "?";
}

// How the arithmetic of a step is done.
//   fp32       everything in fp32, matmuls on the ordinary cores
//   tf32       as fp32, matmuls on TF32 tensor cores
//   fp16_amp   torch.autocast(fp16): fp32 parameters, casts as autocast makes them, loss scaling
//   bf16_amp   torch.autocast(bf16): the same without loss scaling
//   bf16       parameters, gradients and activations in bf16, optimizer state in fp32 master copies
enum class Precision : std::uint8_t { fp32, tf32, fp16_amp, bf16_amp, bf16 };

constexpr bool is_amp(Precision p) { return p == Precision::fp16_amp || p == Precision::bf16_amp; }
// The dtype that parameters are stored and gradients are produced in.
constexpr DType parameter_dtype(Precision p) { return p == Precision::bf16 ? DType::bf16 : DType::fp32; }
// The dtype of matmul inputs and outputs.
constexpr DType compute_dtype(Precision p) {
  switch (p) {
    case Precision::fp16_amp:
      return DType::fp16;
    case Precision::bf16_amp:
    case Precision::bf16:
      return DType::bf16;
    default:
      return DType::fp32;
  }
}
constexpr std::string_view name_of(Precision p) {
  switch (p) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::fp16_amp:
      return "fp16_amp";
    case Precision::bf16_amp:
      return "bf16_amp";
    case Precision::bf16:
      return "bf16";
  }
  return "?";
}

}  // namespace foretrain
