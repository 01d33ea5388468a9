// Parameters of the kernel time model (sim/device/matmul.h, sim/device/attention.h): what they mean, their
// bounds, and the values fitted to published measurements, by architecture. Value types and constant tables:
// safe from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/hardware/gpu.h"

namespace foretrain {

enum class KernelKind : std::uint8_t {
  matmul_ordinary,  // multiply-adds on the ordinary cores (fp32; fp16 before Volta)
  matmul_tensor,    // on tensor cores (fp16, bf16, tf32)
  attention_forward,
  attention_backward,
};
std::string_view name_of(KernelKind kind);

enum class KernelParameterId : std::uint8_t {
  tile_efficiency,     // both
  operand_cost,        // matmul
  tile_overhead_us,    // both
  memory_efficiency,   // both
  launch_us,           // both
  sustained_rate,      // matmul
  power_window_us,     // matmul
  k_step_latency_us,   // matmul
  overlapped_output,   // matmul
  softmax_cycles,      // attention
  wide_head_slowdown,  // attention
  count
};
constexpr std::size_t kKernelParameters = static_cast<std::size_t>(KernelParameterId::count);

struct KernelParameterSpec {
  KernelParameterId id;
  std::string_view name;
  std::string_view unit;
  double low, high;
  std::string_view sentence;
};
std::span<const KernelParameterSpec> kernel_parameter_specs();
const KernelParameterSpec& spec_of(KernelParameterId id);

// Times are those of a GPU at kReferenceClockMhz; another GPU scales the clocked ones (tile_overhead_us,
// k_step_latency_us) by its boost clock, so that one set serves every GPU of an architecture.
struct KernelParameters {
  std::array<double, kKernelParameters> values{};
  double operator[](KernelParameterId id) const { return values[static_cast<std::size_t>(id)]; }
  double& operator[](KernelParameterId id) { return values[static_cast<std::size_t>(id)]; }
};
constexpr double kReferenceClockMhz = 1410;

// A set of values with where they come from.
struct KernelParameterSet {
  KernelKind kind = KernelKind::matmul_tensor;
  GpuArchitecture architecture = GpuArchitecture::ampere;  // measured on
  std::string_view provenance;
  KernelParameters parameters;
  KernelParameters standard_errors;           // 0 where not fitted
  std::span<const KernelParameterId> fitted;  // the others are structural: shared by all GPUs
};

// The set for a GPU: that of its architecture, or of the nearest one that was measured.
const KernelParameterSet& default_kernel_parameters(KernelKind kind, GpuArchitecture architecture);
std::span<const KernelParameterSet> kernel_parameter_sets();

}  // namespace foretrain
