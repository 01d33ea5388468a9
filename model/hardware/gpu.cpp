// Numbers are NVIDIA's datasheets and whitepapers: boost clock, dense (not sparse) rates, memory as marketed.
// Where a datasheet gives no rate (the older GeForce cards), rate = SMs x cores per SM x 2 x boost clock.
// fp16 of GPUs without tensor cores is that of their ordinary cores: twice fp32 on GP100, fp32 (through
// conversion) elsewhere.
#include "model/hardware/gpu.h"

#include <array>
#include <initializer_list>

#include "model/base/text.h"

namespace foretrain {
namespace {

using enum GpuArchitecture;

struct Row {
  std::string_view name, full_name;
  GpuArchitecture architecture;
  int sm_count;
  double boost_mhz;
  double fp32, tf32, fp16, bf16;  // TFLOPS
  double memory_gb_per_s;
  int memory_gib;
  double l2_mib;
  double power_w;
};

constexpr std::array kRows{
    Row{"1080ti", "NVIDIA GeForce GTX 1080 Ti", pascal, 28, 1582, 11.34, 0, 11.34, 0, 484, 11, 2.75, 250},
    Row{"a10", "NVIDIA A10", ampere, 72, 1695, 31.2, 62.5, 125, 125, 600, 24, 6, 150},
    Row{"a100_40_pcie", "NVIDIA A100 40GB PCIe", ampere, 108, 1410, 19.5, 156, 312, 312, 1555, 40, 40, 250},
    Row{"a100_40_sxm", "NVIDIA A100 40GB SXM4", ampere, 108, 1410, 19.5, 156, 312, 312, 1555, 40, 40, 400},
    Row{"a100_80_pcie", "NVIDIA A100 80GB PCIe", ampere, 108, 1410, 19.5, 156, 312, 312, 1935, 80, 40, 300},
    Row{"a100_80_sxm", "NVIDIA A100 80GB SXM4", ampere, 108, 1410, 19.5, 156, 312, 312, 2039, 80, 40, 400},
    Row{"a30", "NVIDIA A30", ampere, 56, 1440, 10.3, 82, 165, 165, 933, 24, 24, 165},
    Row{"a40", "NVIDIA A40", ampere, 84, 1740, 37.4, 74.8, 149.7, 149.7, 696, 48, 6, 300},
    Row{"a6000", "NVIDIA RTX A6000", ampere, 84, 1800, 38.7, 77.4, 154.8, 154.8, 768, 48, 6, 300},
    Row{"b200", "NVIDIA B200 SXM", blackwell, 148, 1965, 75, 1125, 2250, 2250, 7700, 180, 126, 1000},
    Row{"b300", "NVIDIA B300 SXM", blackwell, 148, 1965, 75, 1125, 2250, 2250, 7700, 270, 126, 1100},
    Row{"cpu", "CPU, 16 cores", cpu, 16, 3000, 1.5, 0, 1.5, 1.5, 100, 64, 32, 150},
    Row{"gb200", "NVIDIA GB200 (one GPU)", blackwell, 152, 1965, 80, 1250, 2500, 2500, 8000, 186, 126, 1200},
    Row{"gh200", "NVIDIA GH200 96GB", hopper, 132, 1980, 67, 494.7, 989.4, 989.4, 4000, 96, 50, 700},
    Row{"h100_pcie", "NVIDIA H100 PCIe", hopper, 114, 1755, 51.2, 378, 756, 756, 2039, 80, 50, 350},
    Row{"h100_sxm", "NVIDIA H100 SXM5", hopper, 132, 1980, 66.9, 494.7, 989.4, 989.4, 3352, 80, 50, 700},
    Row{"h200", "NVIDIA H200 SXM", hopper, 132, 1980, 66.9, 494.7, 989.4, 989.4, 4800, 141, 50, 700},
    Row{"k80", "NVIDIA Tesla K80 (one of two GPUs)", kepler, 13, 875, 4.37, 0, 4.37, 0, 240, 12, 1.5, 150},
    Row{"l4", "NVIDIA L4", ada, 58, 2040, 30.3, 60, 121, 121, 300, 24, 48, 72},
    Row{"l40s", "NVIDIA L40S", ada, 142, 2520, 91.6, 183, 362, 362, 864, 48, 96, 350},
    Row{"m40", "NVIDIA Tesla M40", maxwell, 24, 1114, 6.84, 0, 6.84, 0, 288, 12, 3, 250},
    Row{"p100", "NVIDIA Tesla P100 PCIe", pascal, 56, 1303, 9.3, 0, 18.7, 0, 732, 16, 4, 250},
    Row{"rtx3090", "NVIDIA GeForce RTX 3090", ampere, 82, 1695, 35.6, 35.6, 71.2, 71.2, 936, 24, 6, 350},
    Row{"rtx3090ti", "NVIDIA GeForce RTX 3090 Ti", ampere, 84, 1860, 40, 40, 80, 80, 1008, 24, 6, 450},
    Row{"rtx4090", "NVIDIA GeForce RTX 4090", ada, 128, 2520, 82.6, 82.6, 165.2, 165.2, 1008, 24, 72, 450},
    Row{"rtx5090", "NVIDIA GeForce RTX 5090", blackwell, 170, 2407, 104.8, 104.8, 209.5, 209.5, 1792, 32, 96,
        575},
    Row{"t4", "NVIDIA T4", turing, 40, 1590, 8.1, 0, 65, 0, 320, 16, 4, 70},
    Row{"titanx_maxwell", "NVIDIA GeForce GTX TITAN X", maxwell, 24, 1075, 6.61, 0, 6.61, 0, 336.5, 12, 3,
        250},
    Row{"titanx_pascal", "NVIDIA TITAN X (Pascal)", pascal, 28, 1531, 10.97, 0, 10.97, 0, 480, 12, 3, 250},
    Row{"titanxp", "NVIDIA TITAN Xp", pascal, 30, 1582, 12.15, 0, 12.15, 0, 547.7, 12, 3, 250},
    Row{"v100_pcie_16", "NVIDIA V100 PCIe 16GB", volta, 80, 1380, 14, 0, 112, 0, 900, 16, 6, 250},
    Row{"v100_pcie_32", "NVIDIA V100 PCIe 32GB", volta, 80, 1380, 14, 0, 112, 0, 900, 32, 6, 250},
    Row{"v100_sxm2_16", "NVIDIA V100 SXM2 16GB", volta, 80, 1530, 15.7, 0, 125, 0, 900, 16, 6, 300},
    Row{"v100_sxm2_32", "NVIDIA V100 SXM2 32GB", volta, 80, 1530, 15.7, 0, 125, 0, 900, 32, 6, 300},
};

std::array<GpuSpec, kRows.size()> make_presets() {
  std::array<GpuSpec, kRows.size()> presets;
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const Row& row = kRows[i];
    GpuSpec& gpu = presets[i];
    gpu.name = row.name;
    gpu.full_name = row.full_name;
    gpu.architecture = row.architecture;
    gpu.sm_count = row.sm_count;
    gpu.boost_clock_mhz = row.boost_mhz;
    gpu.fp32 = FlopRate::tflops(row.fp32);
    gpu.tf32 = FlopRate::tflops(row.tf32);
    gpu.fp16 = FlopRate::tflops(row.fp16);
    gpu.bf16 = FlopRate::tflops(row.bf16);
    gpu.memory_bandwidth = Bandwidth::gb_per_s(row.memory_gb_per_s);
    gpu.memory = Bytes(row.memory_gib * kGiB.count());
    gpu.l2_cache = Bytes(static_cast<std::int64_t>(row.l2_mib * static_cast<double>(kMiB.count())));
    gpu.power_w = row.power_w;
  }
  return presets;
}

}  // namespace

std::span<const GpuSpec> gpu_presets() {
  static const std::array<GpuSpec, kRows.size()> presets = make_presets();  // immutable once made
  return presets;
}

const GpuSpec* find_gpu(std::string_view name) {
  for (const GpuSpec& gpu : gpu_presets())
    if (equals_ignoring_case(gpu.name, name)) return &gpu;
  return nullptr;
}

}  // namespace foretrain
