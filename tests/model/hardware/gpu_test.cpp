#include "model/hardware/gpu.h"

#include <gtest/gtest.h>

#include <string>

namespace foretrain {
namespace {

// fp32 cores per SM (architecture whitepapers); the big chip of a generation may differ from the others.
int cores_per_sm(const GpuSpec& gpu) {
  switch (gpu.architecture) {
    case GpuArchitecture::kepler:
      return 192;
    case GpuArchitecture::pascal:
      return gpu.name == "p100" ? 64 : 128;
    case GpuArchitecture::volta:
    case GpuArchitecture::turing:
      return 64;
    case GpuArchitecture::ampere:
      return gpu.name == "a30" || gpu.name.rfind("a100", 0) == 0 ? 64 : 128;
    default:
      return 128;
  }
}

TEST(GpuPresets, AreOrderedByNameWithoutRepetition) {
  const auto presets = gpu_presets();
  ASSERT_GT(presets.size(), 25u);
  for (std::size_t i = 1; i < presets.size(); ++i) EXPECT_LT(presets[i - 1].name, presets[i].name);
}

TEST(GpuPresets, CoverTheListOfTheProduct) {
  for (const char* name :
       {"v100_pcie_16", "v100_sxm2_16", "v100_sxm2_32", "t4",          "a30",       "a10",      "a40",
        "a100_40_pcie", "a100_80_pcie", "a100_40_sxm",  "a100_80_sxm", "h100_pcie", "h100_sxm", "h200",
        "b200",         "l4",           "l40s",         "rtx3090",     "rtx4090",   "rtx5090",  "cpu"})
    EXPECT_NE(find_gpu(name), nullptr) << name;
}

TEST(GpuPresets, A30IsAsInItsDatasheet) {
  const GpuSpec* gpu = find_gpu("A30");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->sm_count, 56);
  EXPECT_EQ(gpu->boost_clock_mhz, 1440);
  EXPECT_NEAR(gpu->fp16.tflops(), 165, 1e-9);
  EXPECT_NEAR(gpu->bf16.tflops(), 165, 1e-9);
  EXPECT_NEAR(gpu->tf32.tflops(), 82, 1e-9);
  EXPECT_NEAR(gpu->fp32.tflops(), 10.3, 1e-9);
  EXPECT_NEAR(gpu->memory_bandwidth.gb_per_s(), 933, 1e-9);
  EXPECT_EQ(gpu->memory, 24 * kGiB);
  EXPECT_EQ(gpu->power_w, 165);
}

TEST(GpuPresets, Fp32RateIsCoresTimesTwiceTheBoostClock) {
  for (const GpuSpec& gpu : gpu_presets()) {
    if (gpu.architecture == GpuArchitecture::cpu) continue;
    const double tflops = gpu.sm_count * cores_per_sm(gpu) * 2 * gpu.boost_clock_mhz * 1e-6;
    EXPECT_NEAR(gpu.fp32.tflops() / tflops, 1, 0.06) << gpu.name;
  }
}

TEST(GpuPresets, RatesStandInTheRatiosOfDenseTensorCores) {
  for (const GpuSpec& gpu : gpu_presets()) {
    EXPECT_GT(gpu.fp32.per_s(), 0) << gpu.name;
    EXPECT_GT(gpu.memory_bandwidth.bytes_per_s(), 0) << gpu.name;
    EXPECT_GT(gpu.memory.count(), 0) << gpu.name;
    EXPECT_GT(gpu.l2_cache.count(), 0) << gpu.name;
    EXPECT_GE(gpu.fp16, gpu.fp32) << gpu.name;
    if (gpu.tf32.per_s() > 0) {
      EXPECT_NEAR(gpu.fp16.per_s() / gpu.tf32.per_s(), 2, 0.05) << gpu.name;
    }
    if (gpu.architecture >= GpuArchitecture::ampere) {
      EXPECT_EQ(gpu.bf16, gpu.fp16) << gpu.name;
    }
  }
}

TEST(GpuPresets, NamesAreFoundInAnyCaseAndOthersNot) {
  EXPECT_EQ(find_gpu("H100_SXM"), find_gpu("h100_sxm"));
  EXPECT_EQ(find_gpu("h100"), nullptr);
  EXPECT_EQ(find_gpu(""), nullptr);
}

}  // namespace
}  // namespace foretrain
