// Device time of fused (flash) attention, forward and backward.
//
// A unit of work is one tile of 128 queries of one head: it walks over the tiles of 64 keys that the mask
// leaves, and pays per key tile for the two matrix products (five in the backward pass) and for the softmax,
// whose cost does not depend on the head size. Units are spread over the SMs. Head sizes are padded to those
// the kernels exist for. Pure functions, safe from any thread.
#pragma once

#include <cstdint>

#include "model/hardware/gpu.h"
#include "model/ops/op.h"
#include "sim/device/kernel_parameters.h"

namespace foretrain {

enum class AttentionPass : std::uint8_t { forward, backward };

// How many keys before and after its own position a query sees; negative: no limit.
struct AttentionWindow {
  std::int64_t left = -1;
  std::int64_t right = -1;
};
// causal: right = 0. window w: left = w, and right = w when not causal.
AttentionWindow window_of(const AttentionShape& shape);

// Multiply-adds x 2 of the products over the visible (query, key) pairs, without padding: forward 4 x pairs x
// heads x head_dim, backward 2.5 times that (five products instead of two; as in the FlashAttention papers).
Flops attention_flops(const AttentionShape& shape, AttentionPass pass);
Flops attention_flops(const AttentionShape& shape, AttentionWindow window, AttentionPass pass);

// Shapes with any extent below 1 take no time.
Time attention_time(const GpuSpec& gpu, const AttentionShape& shape, AttentionPass pass,
                    const KernelParameters& parameters);
Time attention_time(const GpuSpec& gpu, const AttentionShape& shape, AttentionWindow window,
                    AttentionPass pass, const KernelParameters& parameters);
// With the default parameters of the GPU's architecture.
Time attention_time(const GpuSpec& gpu, const AttentionShape& shape, AttentionPass pass);

}  // namespace foretrain
