#include "model/hardware/profile.h"

#include <algorithm>

namespace foretrain {
namespace {

using enum ParameterId;

// Ordered by ParameterId. The defaults describe an unknown but ordinary machine: datasheets give the rest.
constexpr std::array<ParameterSpec, kParameters> kTable{{
    {matmul_efficiency_fp32, "matmul_efficiency_fp32", "factor", 1.0, 0.2, 1.5, 0.08,
     "Rate of fp32 matrix products on ordinary cores, times the kernel model's."},
    {matmul_efficiency_tensor, "matmul_efficiency_tensor", "factor", 1.0, 0.2, 1.5, 0.10,
     "Rate of matrix products and fused attention on tensor cores, times the kernel model's."},
    {memory_efficiency, "memory_efficiency", "fraction", 0.75, 0.1, 1.0, 0.12,
     "Fraction of the datasheet's DRAM bandwidth that memory-bound kernels reach."},
    {kernel_overhead_us, "kernel_overhead_us", "us", 2.0, 0.0, 50.0, 0.3,
     "Device time of a kernel that does nothing; added to every kernel."},
    {multi_gpu_slowdown, "multi_gpu_slowdown", "factor", 1.0, 0.8, 4.0, 0.03,
     "Nuisance: factor on the time of all device work in jobs with more than one GPU (clocks, power caps, "
     "sharing)."},
    {communication_interference, "communication_interference", "fraction", 0.15, 0.0, 1.0, 0.5,
     "Computing time lost while communication is under way, as a fraction of the communication's time."},
    {host_time_per_op_us, "host_time_per_op_us", "us", 8.0, 0.0, 500.0, 0.4,
     "Time of the issuing host thread per kernel launch, framework overhead included."},
    {host_time_per_collective_us, "host_time_per_collective_us", "us", 40.0, 0.0, 5000.0, 0.5,
     "Time of the issuing host thread per collective, send or receive."},
    {pcie_efficiency, "pcie_efficiency", "fraction", 0.75, 0.02, 1.0, 0.12,
     "Fraction of a PCIe link's bandwidth that large messages reach."},
    {nvlink_efficiency, "nvlink_efficiency", "fraction", 0.80, 0.02, 1.1, 0.07,
     "Fraction of an NVLink's bandwidth that large messages reach."},
    {network_efficiency, "network_efficiency", "fraction", 0.80, 0.02, 1.0, 0.15,
     "Fraction of a NIC's and network link's bandwidth that large messages reach."},
    {host_bridge_gb_per_s, "host_bridge_gb_per_s", "GB/s", 32.0, 0.2, 1000.0, 0.4,
     "Capacity of the way between CPU sockets and through host memory, per direction; until it is given or "
     "fitted, the link's datasheet counts."},
    {collective_latency_us, "collective_latency_us", "us", 0.0, 0.0, 5000.0, 0.4,
     "Time added to every collective, on top of the latencies of NCCL's own tuner."},
    {hop_latency_us, "hop_latency_us", "us", 0.0, 0.0, 500.0, 0.4,
     "Time added by each step of a ring or level of a tree, on top of NCCL's own."},
    {half_bandwidth_message_mib, "half_bandwidth_message_mib", "MiB", 0.0, 0.0, 512.0, 0.5,
     "Message size at which a collective reaches half of its large-message bandwidth."},
    {memory_constant_fp32_mib, "memory_constant_fp32_mib", "MiB", 0.0, 0.0, 8192.0, 0.0,
     "GPU memory of fp32 and TF32 training that neither a tensor of the step nor a cuBLAS workspace owns."},
    {memory_constant_amp_mib, "memory_constant_amp_mib", "MiB", 0.0, 0.0, 8192.0, 0.0,
     "GPU memory of 16-bit training that neither a tensor of the step nor a cuBLAS workspace owns."},
}};

constexpr bool ordered_by_id() {
  for (std::size_t i = 0; i < kTable.size(); ++i)
    if (kTable[i].id != static_cast<ParameterId>(i)) return false;
  return true;
}
static_assert(ordered_by_id(), "profile_parameters() must be ordered as ParameterId");

}  // namespace

std::span<const ParameterSpec> profile_parameters() { return kTable; }

const ParameterSpec* find_parameter(std::string_view name) {
  const auto it = std::find_if(kTable.begin(), kTable.end(),
                               [name](const ParameterSpec& spec) { return spec.name == name; });
  return it == kTable.end() ? nullptr : &*it;
}

Profile default_profile() {
  Profile profile;
  for (const ParameterSpec& spec : kTable) {
    ParameterValue& value = profile.at(spec.id);
    value.value = spec.fallback;
    value.standard_error = spec.fallback * spec.relative_error;
  }
  return profile;
}

}  // namespace foretrain
