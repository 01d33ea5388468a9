// A GPU (or the CPU as a device) as its datasheet describes it. Fitted behaviour lives in the Profile,
// not here: two GPUs of one architecture differ only by the numbers in this struct.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/base/units.h"

namespace foretrain {

enum class GpuArchitecture { cpu, kepler, maxwell, pascal, volta, turing, ampere, ada, hopper, blackwell };

struct GpuSpec {
  std::string name;       // preset name: "a30"
  std::string full_name;  // "NVIDIA A30"
  GpuArchitecture architecture = GpuArchitecture::ampere;
  int sm_count = 0;  // streaming multiprocessors (physical cores for the CPU)
  double boost_clock_mhz = 0;
  FlopRate fp32;  // dense, ordinary cores
  FlopRate tf32;  // dense tensor cores; zero when the GPU has none
  FlopRate fp16;  // dense tensor cores (fp16 or twice-rate ordinary cores otherwise)
  FlopRate bf16;  // zero when unsupported
  Bandwidth memory_bandwidth;
  Bytes memory;  // marketed capacity as the driver reports it
  Bytes l2_cache;
  double power_w = 0;             // board power limit
  double price_per_hour_usd = 0;  // 0: unknown; a user's scenario gives it
};

// All built-in GPUs, ordered by name; and one by preset name (case-insensitive), or nullptr.
std::span<const GpuSpec> gpu_presets();
const GpuSpec* find_gpu(std::string_view name);

}  // namespace foretrain
