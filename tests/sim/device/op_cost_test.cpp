#include "sim/device/op_cost.h"

#include <gtest/gtest.h>

#include "sim/device/matmul.h"

namespace foretrain {
namespace {

const GpuSpec& a30() { return *find_gpu("a30"); }

Op elementwise(std::int64_t bytes, int launches = 1) {
  Op op;
  op.read = Bytes(bytes / 2);
  op.written = Bytes(bytes - bytes / 2);
  op.launches = launches;
  return op;
}

Time time_of(const Op& op, const Profile& profile, bool multi_gpu = false) {
  return device_time(op, kernel_model_time(op, a30()), a30(), profile, multi_gpu);
}

TEST(OpCost, MemoryBoundOpTakesItsBytesOverTheEffectiveBandwidthAndAnOverheadPerLaunch) {
  Profile profile = default_profile();
  profile.at(ParameterId::memory_efficiency).value = 0.5;
  profile.at(ParameterId::kernel_overhead_us).value = 3;
  // 933 MB at 933 GB/s x 0.5 = 2 ms; two launches 6 us.
  EXPECT_NEAR(time_of(elementwise(933'000'000, 2), profile).us(), 2006.0, 1e-3);
}

TEST(OpCost, MatmulTimeIsTheKernelModelsOverTheEfficiencyOfItsCores) {
  Profile profile = default_profile();
  profile.at(ParameterId::matmul_efficiency_fp32).value = 0.5;
  profile.at(ParameterId::matmul_efficiency_tensor).value = 1.0;
  Op op;
  op.kind = OpKind::matmul;
  op.matmul = MatmulShape{1, 2048, 768, 768, DType::fp32, DType::fp32, false, MatmulLayout::tn};
  EXPECT_NEAR(time_of(op, profile).us(), 2 * matmul_time(a30(), op.matmul).us(), 1e-3);
  op.matmul.input = op.matmul.output = DType::fp16;
  op.matmul.tensor_cores = true;
  EXPECT_NEAR(time_of(op, profile).us(), matmul_time(a30(), op.matmul).us(), 1e-3);
}

TEST(OpCost, TinyMatmulsTakeMicrosecondsOnEveryGpu) {
  for (const GpuSpec& gpu : gpu_presets()) {
    for (const std::int64_t size : {1, 8, 16, 32}) {
      for (const DType dtype : {DType::fp16, DType::fp32}) {
        Op op;
        op.kind = OpKind::matmul;
        op.matmul = MatmulShape{8, size, size, size, dtype, dtype, dtype == DType::fp16, MatmulLayout::nn};
        EXPECT_GT(kernel_model_time(op, gpu), Time{}) << gpu.name;
        EXPECT_LT(kernel_model_time(op, gpu), Time::from_us(100)) << gpu.name << " " << size;
      }
    }
  }
}

TEST(OpCost, SlowDownConcernsJobsWithMoreThanOneGpuOnly) {
  Profile profile = default_profile();
  profile.at(ParameterId::multi_gpu_slowdown).value = 2;
  const Op op = elementwise(1'000'000);
  EXPECT_NEAR(time_of(op, profile, true).us(), 2 * time_of(op, profile, false).us(), 1e-6);
}

TEST(OpCost, ListIsCutAfterCollectivesAndSyncs) {
  Profile profile = default_profile();
  profile.at(ParameterId::host_time_per_op_us).value = 1;
  profile.at(ParameterId::host_time_per_collective_us).value = 10;
  Op all_reduce;
  all_reduce.kind = OpKind::collective;
  Op sync;
  sync.kind = OpKind::host_sync;
  OpList list;
  list.ops = {elementwise(1000), all_reduce, elementwise(1000, 3), sync, elementwise(1000)};
  const CostedList costed = cost(list, kernel_model_times(list, a30()), a30(), profile, false);
  ASSERT_EQ(costed.sections.size(), 3u);
  EXPECT_EQ(costed.sections[0].end, 2);
  EXPECT_EQ(costed.sections[0].stop, OpKind::collective);
  EXPECT_EQ(costed.sections[1].end, 4);
  EXPECT_EQ(costed.sections[1].stop, OpKind::host_sync);
  EXPECT_EQ(costed.sections[2].end, 5);
  EXPECT_EQ(Time::from_ps(costed.host_ps()).us(), 1 + 10 + 3 + 1 + 1);
  EXPECT_EQ(costed.sections[1].segment, costed.segment(2, 4));
}

}  // namespace
}  // namespace foretrain
