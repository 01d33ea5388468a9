#include "sim/device/kernel_parameters.h"

#include <array>

namespace foretrain {
namespace {

using enum KernelParameterId;

constexpr std::array<KernelParameterSpec, kKernelParameters> kSpecs{{
    {tile_efficiency, "tile_efficiency", "fraction", 0.2, 1.2,
     "Share of an SM's peak rate that the main loop of a large tile reaches."},
    {operand_cost, "operand_cost", "factor", 0.001, 3,
     "How much slower small tiles run for loading more operands per flop."},
    {tile_overhead_us, "tile_overhead_us", "us", 0.001, 20,
     "Prologue and epilogue of one tile (matmul: of 256 x 128 elements, in proportion to the area)."},
    {memory_efficiency, "memory_efficiency", "fraction", 0.2, 0.95,
     "Share of the datasheet's memory bandwidth that the kernel's traffic gets."},
    {launch_us, "launch_us", "us", 0.1, 120, "Fixed time of a kernel."},
    {sustained_rate, "sustained_rate", "fraction", 0.1, 3,
     "Arithmetic rate that the power limit sustains, as a fraction of peak; above 1 it never limits."},
    {power_window_us, "power_window_us", "us", 0.01, 1000,
     "Kernels much shorter than this run at boost before the power limit acts."},
    {k_step_latency_us, "k_step_latency_us", "us", 0.001, 2,
     "Time of one load of 32 elements of k when nothing else runs on the SM."},
    {overlapped_output, "overlapped_output", "fraction", 0.01, 1,
     "Share of the output traffic that overlaps the arithmetic of other tiles."},
    {softmax_cycles, "softmax_cycles", "cycles", 0.0001, 1,
     "SM cycles for mask, exponential and rescaling of one score."},
    {wide_head_slowdown, "wide_head_slowdown", "factor", 0.5, 3,
     "Slow-down of the products for heads of more than 128."},
}};

// What each kind of data can determine; listed from the most important on. DeepBench has small and thin
// shapes; the others have large ones only, so that launch, load latency and the cost of small tiles are taken
// from the V100. The B200 rows are short of the power limit or at it, which hides its tile parameters.
constexpr std::array kThinMatmulFitted{tile_efficiency,   operand_cost,      launch_us,
                                       k_step_latency_us, memory_efficiency, tile_overhead_us};
constexpr std::array kLargeMatmulFitted{tile_efficiency, memory_efficiency, tile_overhead_us, sustained_rate,
                                        overlapped_output};
constexpr std::array kPowerMatmulFitted{sustained_rate, memory_efficiency, power_window_us};
constexpr std::array kOrdinaryMatmulFitted{tile_efficiency, operand_cost, launch_us, memory_efficiency,
                                           tile_overhead_us};
constexpr std::array kForwardFitted{softmax_cycles, launch_us, tile_overhead_us};
constexpr std::array kBackwardFitted{softmax_cycles, launch_us, wide_head_slowdown};

constexpr KernelParameters of(std::array<double, kKernelParameters> values) {
  return KernelParameters{values};
}

// A line of numbers has the order of KernelParameterId; the first line is values, the second standard errors
// (0: not fitted, or at its bound).
constexpr std::array kSets{
    KernelParameterSet{KernelKind::matmul_tensor, GpuArchitecture::volta,
                       "fit to DeepBench V100, fp16 in, fp32 accumulate (160 rows)",
                       of({0.942, 0.157, 8.85, 0.782, 3.68, 3, 0.01, 0.413, 0.8, 0, 1}),
                       of({0.022, 0.03, 2.2, 0.016, 0.16, 0, 0, 0.02, 0, 0, 0}), kThinMatmulFitted},
    KernelParameterSet{KernelKind::matmul_tensor, GpuArchitecture::ampere,
                       "fit to SimuMax A100-80GB-PCIe, bf16 (141 rows)",
                       of({0.856, 0.5, 0.95, 0.95, 2.5, 1.25, 1, 0.32, 0.425, 0, 1}),
                       of({0.015, 0, 0.5, 0, 0, 0.076, 0, 0, 0.058, 0, 0}), kLargeMatmulFitted},
    KernelParameterSet{KernelKind::matmul_tensor, GpuArchitecture::blackwell,
                       "fit to SimuMax B200-SXM, bf16 (374 rows)",
                       of({0.95, 0.02, 0.07, 0.483, 2, 0.516, 72, 0.014, 0.8, 0, 1}),
                       of({0, 0, 0, 0.011, 0, 0.003, 5.8, 0, 0, 0, 0}), kPowerMatmulFitted},
    KernelParameterSet{KernelKind::matmul_ordinary, GpuArchitecture::volta,
                       "fit to DeepBench V100, fp32 (160 rows)",
                       of({0.902, 0.0351, 2.1, 0.95, 7.28, 3, 0.01, 0.3, 0.8, 0, 1}),
                       of({0.0097, 0.0042, 5.6, 0, 0.25, 0, 0, 0, 0, 0, 0}), kOrdinaryMatmulFitted},
    KernelParameterSet{KernelKind::attention_forward, GpuArchitecture::ampere,
                       "fit to FlashAttention on A30 (50 rows)",
                       of({1, 0, 3.87, 0.85, 21.6, 0, 0, 0, 0, 0.159, 1}),
                       of({0, 0, 0.2, 0, 2.2, 0, 0, 0, 0, 0.0034, 0}), kForwardFitted},
    KernelParameterSet{KernelKind::attention_backward, GpuArchitecture::ampere,
                       "fit to SimuMax A100-80GB-PCIe, bf16 (12 rows)",
                       of({1, 0, 1, 0.85, 28.8, 0, 0, 0, 0, 0.279, 1.36}),
                       of({0, 0, 0, 0, 26, 0, 0, 0, 0, 0.015, 0.04}), kBackwardFitted},
    KernelParameterSet{KernelKind::attention_forward, GpuArchitecture::blackwell,
                       "fit to SimuMax B200-SXM, bf16 (32 rows)",
                       of({1, 0, 0.001, 0.85, 51.4, 0, 0, 0, 0, 0.0493, 1}),
                       of({0, 0, 0, 0, 3.2, 0, 0, 0, 0, 0.0031, 0}), kForwardFitted},
    KernelParameterSet{KernelKind::attention_backward, GpuArchitecture::blackwell,
                       "fit to SimuMax B200-SXM, bf16 (32 rows)",
                       of({1, 0, 1, 0.85, 1.68, 0, 0, 0, 0, 0.105, 1.61}),
                       of({0, 0, 0, 0, 2.4, 0, 0, 0, 0, 0.0023, 0.03}), kBackwardFitted},
};

}  // namespace

std::string_view name_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::matmul_ordinary:
      return "matmul on ordinary cores";
    case KernelKind::matmul_tensor:
      return "matmul on tensor cores";
    case KernelKind::attention_forward:
      return "attention forward";
    case KernelKind::attention_backward:
      return "attention backward";
  }
  return "?";
}

std::span<const KernelParameterSpec> kernel_parameter_specs() { return kSpecs; }
const KernelParameterSpec& spec_of(KernelParameterId id) { return kSpecs[static_cast<std::size_t>(id)]; }
std::span<const KernelParameterSet> kernel_parameter_sets() { return kSets; }

const KernelParameterSet& default_kernel_parameters(KernelKind kind, GpuArchitecture architecture) {
  // The newest measured architecture that is not newer, else the oldest measured one.
  const KernelParameterSet* best = nullptr;
  const KernelParameterSet* oldest = &kSets[0];
  for (const KernelParameterSet& set : kSets) {
    if (set.kind != kind) continue;
    if (oldest->kind != kind || set.architecture < oldest->architecture) oldest = &set;
    if (set.architecture <= architecture && (best == nullptr || set.architecture > best->architecture))
      best = &set;
  }
  return best != nullptr ? *best : *oldest;
}

}  // namespace foretrain
