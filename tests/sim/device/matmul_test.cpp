#include "sim/device/matmul.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <utility>

namespace foretrain {
namespace {

using enum KernelParameterId;

MatmulShape half(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  MatmulShape shape;
  shape.batch = batch;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.input = shape.output = DType::bf16;
  shape.tensor_cores = true;
  return shape;
}
MatmulShape single(std::int64_t m, std::int64_t n, std::int64_t k) {
  MatmulShape shape = half(m, n, k);
  shape.input = shape.output = DType::fp32;
  shape.tensor_cores = false;
  return shape;
}
double flops(const MatmulShape& s) {
  return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) *
         static_cast<double>(s.k);
}

// A machine in which only arithmetic costs.
GpuSpec ideal_gpu() {
  GpuSpec gpu = *find_gpu("a100_80_pcie");
  gpu.memory_bandwidth = Bandwidth::gb_per_s(1e12);
  return gpu;
}
KernelParameters ideal_parameters() {
  KernelParameters p;
  p[tile_efficiency] = 1;
  p[memory_efficiency] = 1;
  p[sustained_rate] = 1e9;
  p[overlapped_output] = 1;
  return p;
}

TEST(Matmul, TilesThatFillEveryWaveRunAtPeak) {
  // 108 tiles of 256 x 128, and 216.
  for (const std::int64_t waves : {1, 2, 5}) {
    const MatmulShape shape = half(256 * 12, 128 * 9 * waves, 4096);
    const MatmulChoice choice = choose_matmul(ideal_gpu(), shape, ideal_parameters());
    EXPECT_NEAR(choice.total_us, flops(shape) / 312e12 * 1e6, 1e-3);
  }
}

TEST(Matmul, OneTileMoreThanAWaveCostsAWholeWave) {
  KernelParameters p = ideal_parameters();
  p[operand_cost] = 1e6;  // only the largest tile is worth it
  p[launch_us] = 1e6;     // a split costs more than it saves
  const MatmulShape full = half(256, 128, 4096, 108), over = half(256, 128, 4096, 109);
  const double one = choose_matmul(ideal_gpu(), full, p).tiles_us;
  const double two = choose_matmul(ideal_gpu(), over, p).tiles_us;
  EXPECT_NEAR(two / one, 2, 1e-9);
  EXPECT_NEAR(one, 2.0 * 256 * 128 * 4096 * 108 / 312e12 * 1e6, 1e-6);
}

TEST(Matmul, ADeepThinProductIsSplitAlongK) {
  const GpuSpec& gpu = *find_gpu("v100_sxm2_16");
  const auto& p = default_kernel_parameters(KernelKind::matmul_tensor, gpu.architecture).parameters;
  EXPECT_GT(choose_matmul(gpu, half(512, 16, 500000), p).k_splits, 8);
  EXPECT_EQ(choose_matmul(gpu, half(8192, 8192, 1024), p).k_splits, 1);
}

TEST(Matmul, OrdinaryAndTensorCoresAreChosenByDtypeAndGpu) {
  const GpuSpec& a30 = *find_gpu("a30");
  EXPECT_EQ(matmul_kind(a30, half(1, 1, 1)), KernelKind::matmul_tensor);
  EXPECT_EQ(matmul_kind(a30, single(1, 1, 1)), KernelKind::matmul_ordinary);
  MatmulShape tf32 = single(1, 1, 1);
  tf32.tensor_cores = true;
  EXPECT_NEAR(matmul_peak(a30, tf32).tflops(), 82, 1e-9);
  EXPECT_NEAR(matmul_peak(*find_gpu("v100_sxm2_16"), tf32).tflops(), 15.7, 1e-9) << "no TF32 before Ampere";
  EXPECT_NEAR(matmul_peak(*find_gpu("p100"), half(1, 1, 1)).tflops(), 9.3, 1e-9) << "no tensor cores";
}

TEST(Matmul, EmptyShapesTakeNoTime) {
  EXPECT_EQ(matmul_time(*find_gpu("a30"), half(0, 128, 128)), Time{});
  EXPECT_EQ(matmul_time(*find_gpu("a30"), half(128, 128, 128, 0)), Time{});
}

TEST(Matmul, A30IsAnA100WithLessOfEverything) {
  // Large enough that waves average out: the ratio of the rates, 312 / 165.
  const MatmulShape shape = half(16384, 16384, 4096);
  const double ratio = matmul_time(*find_gpu("a30"), shape) / matmul_time(*find_gpu("a100_80_pcie"), shape);
  EXPECT_NEAR(ratio, 312.0 / 165.0, 0.05 * 312.0 / 165.0);
}

struct Measured {
  std::int64_t m, n, k;
  double us;
};

// Published by MooreThreads/SimuMax for the A100-80GB-PCIe (bf16, output bf16, nothing accumulated).
TEST(Matmul, DefaultsPredictMeasuredA100Times) {
  constexpr std::array rows{Measured{4096, 5120, 1536, 279.98},     Measured{4096, 1536, 24576, 1343.37},
                            Measured{4096, 2048, 7168, 539.03},     Measured{4096, 4096, 4096, 607.80},
                            Measured{4096, 8192, 28672, 8321.75},   Measured{4096, 28672, 8192, 8152.52},
                            Measured{24640, 1536, 5120, 1652.28},   Measured{33024, 2048, 7168, 4159.15},
                            Measured{4096, 128256, 8192, 37047.93}, Measured{4096, 7168, 576, 168.20}};
  double sum = 0;
  for (const Measured& row : rows) {
    const double us = matmul_time(*find_gpu("a100_80_pcie"), half(row.m, row.n, row.k)).us();
    sum += std::abs(us / row.us - 1);
    EXPECT_NEAR(us / row.us, 1, 0.12) << row.m << " " << row.n << " " << row.k;
  }
  EXPECT_LT(sum / rows.size(), 0.04);
}

// DeepBench, V100, fp32 (rounded to a microsecond by its authors), small and thin shapes included.
TEST(Matmul, DefaultsPredictMeasuredV100Fp32Times) {
  constexpr std::array rows{Measured{1760, 16, 1760, 38},      Measured{1760, 128, 1760, 88},
                            Measured{2048, 32, 2048, 45},      Measured{512, 24000, 2816, 4798},
                            Measured{4096, 7000, 4096, 15894}, Measured{5124, 9124, 2560, 18587},
                            Measured{3072, 64, 1024, 51},      Measured{7680, 48000, 2560, 145035},
                            Measured{1024, 700, 512, 67},      Measured{35, 8457, 4096, 390}};
  double sum = 0;
  for (const Measured& row : rows) {
    const double us = matmul_time(*find_gpu("v100_sxm2_16"), single(row.m, row.n, row.k)).us();
    sum += std::abs(us / row.us - 1);
    EXPECT_NEAR(us / row.us, 1, 0.3) << row.m << " " << row.n << " " << row.k;
  }
  EXPECT_LT(sum / rows.size(), 0.14);
}

MatmulShape any_shape() {
  MatmulShape shape =
      half(*rc::gen::inRange<std::int64_t>(1, 20000), *rc::gen::inRange<std::int64_t>(1, 20000),
           *rc::gen::inRange<std::int64_t>(1, 20000), *rc::gen::inRange<std::int64_t>(1, 20));
  if (*rc::gen::arbitrary<bool>()) {
    shape.input = shape.output = DType::fp32;
    shape.tensor_cores = false;
  }
  return shape;
}
const GpuSpec& any_gpu() { return gpu_presets()[*rc::gen::inRange<std::size_t>(0, gpu_presets().size())]; }

RC_GTEST_PROP(Matmul, IsNeverFasterThanPeakOrThanReadingAndWritingOnce, ()) {
  const GpuSpec& gpu = any_gpu();
  const MatmulShape shape = any_shape();
  const double us = matmul_time(gpu, shape).us();
  RC_ASSERT(us * 1.000001 >= flops(shape) / matmul_peak(gpu, shape).per_s() * 1e6);
  const double bytes = static_cast<double>(shape.batch * size_of(shape.input)) *
                       static_cast<double>(shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  RC_ASSERT(us * 1.000001 >= bytes / gpu.memory_bandwidth.bytes_per_s() * 1e6);
}

RC_GTEST_PROP(Matmul, IsTheSameForTheTransposedProblem, ()) {
  const GpuSpec& gpu = any_gpu();
  const MatmulShape shape = any_shape();
  MatmulShape transposed = shape;
  std::swap(transposed.m, transposed.n);
  RC_ASSERT(matmul_time(gpu, shape) == matmul_time(gpu, transposed));
}

RC_GTEST_PROP(Matmul, MoreBatchesOrAccumulationNeverTakeLess, ()) {
  const GpuSpec& gpu = any_gpu();
  MatmulShape shape = any_shape();
  const auto& p = default_kernel_parameters(matmul_kind(gpu, shape), gpu.architecture).parameters;
  const Time time = matmul_time(gpu, shape, p);
  RC_ASSERT(matmul_time(gpu, shape, p, true) >= time);
  ++shape.batch;
  RC_ASSERT(matmul_time(gpu, shape, p) >= time);
}

}  // namespace
}  // namespace foretrain
