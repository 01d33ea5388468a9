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
    {memory_efficiency, "memory_efficiency", "fraction", 0.2, 1.05,
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

constexpr std::array kMatmulFitted{tile_efficiency, operand_cost,   tile_overhead_us, memory_efficiency,
                                   launch_us,       sustained_rate, overlapped_output};
constexpr std::array kMatmulLatencyFitted{tile_efficiency,   operand_cost, tile_overhead_us,
                                          memory_efficiency, launch_us,    k_step_latency_us};
constexpr std::array kMatmulPowerFitted{memory_efficiency, sustained_rate, power_window_us,
                                        overlapped_output};
constexpr std::array kAttentionFitted{tile_efficiency, tile_overhead_us, launch_us, softmax_cycles,
                                      wide_head_slowdown};

// In the order of KernelParameterId.
constexpr KernelParameters of(std::array<double, kKernelParameters> values) {
  return KernelParameters{values};
}

constexpr std::array kSets{
    KernelParameterSet{KernelKind::matmul_tensor, GpuArchitecture::volta,
                       "fit to DeepBench V100, fp16 in, fp32 accumulate (160 rows)",
                       of({0.95, 0.16, 10.1, 0.78, 3.66, 3, 0.01, 0.41, 0.8, 0, 1}), of({}),
                       kMatmulLatencyFitted},
    KernelParameterSet{KernelKind::matmul_tensor, GpuArchitecture::ampere,
                       "fit to SimuMax A100-80GB-PCIe, bf16 (141 rows)",
                       of({0.9, 0.9, 1.93, 0.8, 2.3, 1.09, 1, 0.41, 0.54, 0, 1}), of({}), kMatmulFitted},
    KernelParameterSet{
        KernelKind::matmul_tensor, GpuArchitecture::blackwell, "fit to SimuMax B200-SXM, bf16 (374 rows)",
        of({0.95, 0.02, 0.07, 0.46, 2, 0.516, 68, 0.014, 0.8, 0, 1}), of({}), kMatmulPowerFitted},
    KernelParameterSet{
        KernelKind::matmul_ordinary, GpuArchitecture::volta, "fit to DeepBench V100, fp32 (160 rows)",
        of({0.9, 0.033, 0.05, 0.99, 7.5, 3, 0.01, 0.5, 0.8, 0, 1}), of({}), kMatmulLatencyFitted},
    KernelParameterSet{KernelKind::attention_forward, GpuArchitecture::ampere,
                       "fit to FlashAttention on A30 (51 rows)",
                       of({1, 0, 3.4, 0.85, 14, 0, 0, 0, 0, 0.2, 1.08}), of({}), kAttentionFitted},
    KernelParameterSet{KernelKind::attention_backward, GpuArchitecture::ampere,
                       "fit to SimuMax A100-80GB-PCIe, bf16 (12 rows)",
                       of({1, 0, 14, 0.85, 25, 0, 0, 0, 0, 0.23, 1.35}), of({}), kAttentionFitted},
    KernelParameterSet{KernelKind::attention_forward, GpuArchitecture::blackwell,
                       "fit to SimuMax B200-SXM, bf16 (32 rows)",
                       of({0.95, 0, 0.2, 0.85, 50, 0, 0, 0, 0, 0.05, 1}), of({}), kAttentionFitted},
    KernelParameterSet{KernelKind::attention_backward, GpuArchitecture::blackwell,
                       "fit to SimuMax B200-SXM, bf16 (32 rows)",
                       of({0.97, 0, 0.5, 0.85, 10, 0, 0, 0, 0, 0.1, 1.6}), of({}), kAttentionFitted},
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
  const KernelParameterSet* oldest = nullptr;
  for (const KernelParameterSet& set : kSets) {
    if (set.kind != kind) continue;
    if (oldest == nullptr || set.architecture < oldest->architecture) oldest = &set;
    if (set.architecture <= architecture && (best == nullptr || set.architecture > best->architecture))
      best = &set;
  }
  return best != nullptr ? *best : *oldest;
}

}  // namespace foretrain
