// Device time of one matmul by the mechanism of a tiled library kernel.
//
// C (m x n) is cut into tiles; every streaming multiprocessor (SM) computes one tile after the other, so the
// time goes in waves; the library picks among the tile shapes it has, and may split k over several SMs when
// there are too few tiles. Four limits, of which the slowest counts (joined smoothly):
//   tiles    waves x (2 bm bn k / rate of an SM + overhead per tile), where small tiles run slower because
//            they load more operands per flop, and a tile that is alone on its SM waits for every load
//   memory   operands (once, or once per wave when the waves re-read them) and output over DRAM bandwidth
//   power    flops / sustained rate; kernels much shorter than the power controller's window run at boost
//   k steps  a deep, thin product is a chain of loads, each of which takes k_step_latency_us
// Fitted in calibrate/kernels; per-group errors are printed by `foretrain validate --kernels`.
#pragma once

#include "model/hardware/gpu.h"
#include "model/ops/op.h"
#include "sim/device/kernel_parameters.h"

namespace foretrain {

// Which cores do it: tensor cores for fp16 and bf16 (and fp32 as TF32 with `tensor_cores`) where the GPU has
// them.
KernelKind matmul_kind(const GpuSpec& gpu, const MatmulShape& shape);
// Datasheet rate of those cores for the input type.
FlopRate matmul_peak(const GpuSpec& gpu, const MatmulShape& shape);

struct MatmulChoice {
  int tile_m = 0, tile_n = 0;
  int k_splits = 1;
  double waves = 0;
  double tiles_us = 0, memory_us = 0, power_us = 0;  // the limits
  double total_us = 0;
};

// The fastest way and its terms. `accumulate`: C += A B, so that C is read as well as written. Empty shapes
// (any extent below 1) take no time. Below 2 us of processor time, no allocation.
MatmulChoice choose_matmul(const GpuSpec& gpu, const MatmulShape& shape, const KernelParameters& parameters,
                           bool accumulate = false);

Time matmul_time(const GpuSpec& gpu, const MatmulShape& shape, const KernelParameters& parameters,
                 bool accumulate = false);
// With the default parameters of the GPU's architecture.
Time matmul_time(const GpuSpec& gpu, const MatmulShape& shape);

}  // namespace foretrain
