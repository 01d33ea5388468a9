#include "sim/device/matmul.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace foretrain {
namespace {

using enum KernelParameterId;

struct Tile {
  double m, n;
};
// Tile shapes of the libraries, large to small. 256 x 256 is a pair of SMs on Blackwell.
constexpr std::array kTensorTiles{Tile{256, 256}, Tile{256, 128}, Tile{128, 256}, Tile{128, 128},
                                  Tile{256, 64},  Tile{64, 256},  Tile{128, 64},  Tile{64, 128},
                                  Tile{64, 64},   Tile{128, 32},  Tile{32, 128},  Tile{64, 32},
                                  Tile{32, 64}};
constexpr std::array kOrdinaryTiles{Tile{128, 128}, Tile{128, 64}, Tile{64, 128}, Tile{64, 64}, Tile{128, 32},
                                    Tile{32, 128},  Tile{64, 32},  Tile{32, 64},  Tile{32, 32}};
constexpr std::array kSplits{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0};

// Structure shared by all GPUs.
constexpr double kLargeTile = 256.0 * 128.0;  // the tile that overheads and residency refer to
constexpr double kKStep = 32;                 // depth of one load of the pipeline
constexpr double kLeastSplitDepth = 128;      // a slice of k thinner than this is not worth splitting
constexpr double kSplitLaunchShare = 0.5;     // the reduction kernel's launch, as a share of a launch
constexpr double kWaveTraffic = 1.5;  // operand traffic of a wave over that of a perfectly square super-tile
constexpr double kSmallestSide = 32;
constexpr double kSmallestArea = 64.0 * 32.0;  // no library has tiles of tensor cores below

std::span<const Tile> tiles_of(const GpuSpec& gpu, KernelKind kind) {
  if (kind == KernelKind::matmul_ordinary) return kOrdinaryTiles;
  const std::span<const Tile> all(kTensorTiles);
  return gpu.architecture == GpuArchitecture::blackwell ? all : all.subspan(1);
}

double cube(double x) { return x * x * x; }

}  // namespace

KernelKind matmul_kind(const GpuSpec& gpu, const MatmulShape& shape) {
  const bool has_tensor_cores = gpu.architecture >= GpuArchitecture::volta;
  if (!has_tensor_cores || !shape.tensor_cores) return KernelKind::matmul_ordinary;
  if (shape.input == DType::fp32 && !(gpu.tf32.per_s() > 0)) return KernelKind::matmul_ordinary;
  if (shape.input == DType::bf16 && !(gpu.bf16.per_s() > 0)) return KernelKind::matmul_ordinary;
  return KernelKind::matmul_tensor;
}

FlopRate matmul_peak(const GpuSpec& gpu, const MatmulShape& shape) {
  if (matmul_kind(gpu, shape) == KernelKind::matmul_ordinary) return gpu.fp32;
  if (shape.input == DType::fp32) return gpu.tf32;
  return shape.input == DType::bf16 ? gpu.bf16 : gpu.fp16;
}

MatmulChoice choose_matmul(const GpuSpec& gpu, const MatmulShape& shape, const KernelParameters& p,
                           bool accumulate) {
  MatmulChoice best;
  if (shape.batch < 1 || shape.m < 1 || shape.n < 1 || shape.k < 1 || gpu.sm_count < 1) return best;
  const auto batch = static_cast<double>(shape.batch), m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const double sms = gpu.sm_count;
  const double peak_per_us = matmul_peak(gpu, shape).per_s() * 1e-6;
  const double sm_rate = peak_per_us / sms * p[tile_efficiency];
  const double bytes_per_us = gpu.memory_bandwidth.bytes_per_s() * 1e-6 * p[memory_efficiency];
  const double clock = gpu.boost_clock_mhz > 0 ? kReferenceClockMhz / gpu.boost_clock_mhz : 1.0;
  const double overhead = p[tile_overhead_us] * clock / kLargeTile;
  const double step_latency = p[k_step_latency_us] * clock / kKStep;

  const auto operand_size = static_cast<double>(size_of(shape.input));
  const double operands = batch * (m * k + n * k) * operand_size;
  const double output_bytes =
      batch * m * n * static_cast<double>(size_of(shape.output)) * (accumulate ? 2.0 : 1.0);
  const double output_us = output_bytes / bytes_per_us;
  // Writing the output overlaps the arithmetic of other tiles only in part.
  const double exposed_output_us = output_us * (1 - p[overlapped_output]);

  best.total_us = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles_of(gpu, matmul_kind(gpu, shape))) {
    const double area = tile.m * tile.n;
    // Tiles that are mostly padding, unless there is none smaller.
    const bool padding =
        (tile.m >= 2 * m && tile.m > kSmallestSide) || (tile.n >= 2 * n && tile.n > kSmallestSide);
    if (padding && area > kSmallestArea) continue;
    const double grid = batch * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    // Loads per flop, relative to the 256 x 128 tile: (1/bm + 1/bn).
    const double rate = sm_rate / (1 + p[operand_cost] * (128 / tile.m + 128 / tile.n - 1.5));
    // Time at the sustained rate; t / (t + window) of it counts, so that short kernels run at boost.
    const double sustained = 2 * grid * area * k / (peak_per_us * p[sustained_rate]);
    const double power = sustained * sustained / (sustained + p[power_window_us]);
    const double resident = std::max(1.0, std::floor(kLargeTile / area));
    for (const double splits : kSplits) {
      if (splits > 1 && k / splits < kLeastSplitDepth) break;
      // A split writes and reads its partial sums and launches a reduction.
      const double split_us =
          splits > 1 ? p[launch_us] * kSplitLaunchShare + 2 * splits * batch * m * n * 4 / bytes_per_us : 0.0;
      const double fixed = p[launch_us] + split_us + exposed_output_us;
      if (fixed + power >= best.total_us) break;
      const double depth = std::ceil(k / splits);
      const double count = grid * splits;
      const double waves = std::ceil(count / sms);
      double tile_us = 2 * area * depth / rate;
      const double chain_us = depth * step_latency;
      if (tile_us < chain_us) tile_us = std::max(tile_us, chain_us / std::min(waves, resident));
      const double tiles_us = waves * (tile_us + overhead * area);
      // The tiles of one wave form a super-tile whose rows of A and columns of B are read once.
      const double side = 2 * std::sqrt(std::min(count, sms) * area);
      const double wave_bytes =
          std::max(1.0, count / sms) * std::min(side, m + n) * depth * operand_size * kWaveTraffic;
      const double memory_us =
          std::max(operands, wave_bytes) / bytes_per_us + output_us * p[overlapped_output];
      if (fixed + std::max(tiles_us, memory_us) >= best.total_us) continue;
      const double total = fixed + std::cbrt(cube(tiles_us) + cube(memory_us) + cube(power));
      if (total >= best.total_us) continue;
      best = {static_cast<int>(tile.m),
              static_cast<int>(tile.n),
              static_cast<int>(splits),
              waves,
              tiles_us,
              memory_us,
              power,
              total};
    }
  }
  return best;
}

Time matmul_time(const GpuSpec& gpu, const MatmulShape& shape, const KernelParameters& parameters,
                 bool accumulate) {
  return Time::from_us(choose_matmul(gpu, shape, parameters, accumulate).total_us);
}

Time matmul_time(const GpuSpec& gpu, const MatmulShape& shape) {
  return matmul_time(gpu, shape,
                     default_kernel_parameters(matmul_kind(gpu, shape), gpu.architecture).parameters);
}

}  // namespace foretrain
