// A hardware profile: the parameters of the time and memory model, each with unit, standard error,
// bounds and provenance. Every parameter is declared once, in profile_parameters(); reading, help, docs
// and fitting are driven by that table.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"
#include "model/hardware/gpu.h"

namespace foretrain {

enum class ParameterId : std::uint8_t {
  // Device.
  matmul_efficiency_fp32,      // times the kernel model's rate on ordinary cores
  matmul_efficiency_tensor,    // times the kernel model's rate on tensor cores
  memory_efficiency,           // fraction of datasheet DRAM bandwidth of memory-bound kernels
  kernel_overhead_us,          // device time of an empty kernel
  multi_gpu_slowdown,          // nuisance: factor on all device work in jobs with more than one GPU
  communication_interference,  // slow-down of compute while a collective runs, as a fraction of its time
  // Host.
  host_time_per_op_us,  // the issuing thread's time per kernel launch
  host_time_per_collective_us,
  // Links.
  pcie_efficiency,  // fraction of a PCIe link's bandwidth that large messages reach
  nvlink_efficiency,
  network_efficiency,
  host_bridge_gb_per_s,        // capacity of one host bridge for staged or peer traffic, both directions
  collective_latency_us,       // fixed cost of a collective
  hop_latency_us,              // added per ring or tree step
  half_bandwidth_message_mib,  // message at which a collective reaches half of its large-message bandwidth
  // Memory: one constant per precision class, for what the op lists do not own (workspaces, context).
  memory_constant_fp32_mib,
  memory_constant_amp_mib,
  count
};
constexpr std::size_t kParameters = static_cast<std::size_t>(ParameterId::count);

struct ParameterSpec {
  ParameterId id;
  std::string_view name;      // "host_time_per_op_us"; the unit is the suffix
  std::string_view unit;      // "us", "fraction", "GB/s", "MiB", "factor"
  double fallback;            // default value
  double low, high;           // bounds
  double relative_error;      // standard error of the default, as a fraction
  std::string_view sentence;  // what it means, one sentence
};
std::span<const ParameterSpec> profile_parameters();
const ParameterSpec* find_parameter(std::string_view name);

struct ParameterValue {
  double value = 0;
  double standard_error = 0;
  std::string provenance = "default";  // "datasheet", "micro-benchmark of ...", "fit to cases.csv (18 rows)"
  bool fitted = false;
};

struct Profile {
  std::string name = "default";
  std::array<ParameterValue, kParameters> values;
  // Correlation of fitted parameters, row-major over `correlated`; empty when unknown.
  std::vector<ParameterId> correlated;
  std::vector<double> correlation;

  double operator[](ParameterId id) const { return values[static_cast<std::size_t>(id)].value; }
  ParameterValue& at(ParameterId id) { return values[static_cast<std::size_t>(id)]; }
  const ParameterValue& at(ParameterId id) const { return values[static_cast<std::size_t>(id)]; }
};

// Every parameter at its default.
Profile default_profile();

}  // namespace foretrain
