#include "model/ops/optimizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace foretrain {
namespace {

constexpr std::int64_t kElements = 125'226'240;  // the reference model
constexpr std::int64_t kTensors = 196;

TrainingSpec with(Optimizer optimizer) {
  TrainingSpec training;
  training.optimizer = optimizer;
  return training;
}

// What torch.optim.AdamW(foreach=True) issues in PyTorch 2.7.1, with the lists each call reads and writes:
// _foreach_mul_(p), _foreach_lerp_(m, g), _foreach_mul_(v), _foreach_addcmul_(v, g, g), _foreach_sqrt(v),
// _foreach_div_(t), _foreach_add_(t), _foreach_addcdiv_(p, m, t).
TEST(Optimizer, ForeachAdamWIssuesPyTorchsEightKernels) {
  const std::int64_t reads[] = {1, 2, 1, 2, 1, 1, 1, 3};
  const auto ops = optimizer_ops(with(Optimizer::adamw_foreach), kElements, kTensors, DType::fp32);
  ASSERT_EQ(ops.size(), std::size(reads));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    EXPECT_EQ(ops[i].read, Bytes(4 * kElements * reads[i])) << ops[i].name;
    EXPECT_EQ(ops[i].written, Bytes(4 * kElements)) << ops[i].name;
  }
}

// Four tensors read and three written, once.
TEST(Optimizer, FusedAdamWTouchesEveryByteOnce) {
  const auto ops = optimizer_ops(with(Optimizer::adamw_fused), kElements, kTensors, DType::fp32);
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops[0].read, Bytes(4 * 4 * kElements));
  EXPECT_EQ(ops[0].written, Bytes(3 * 4 * kElements));
}

TEST(Optimizer, StateIsTwoMomentsAndAMasterCopyForSixteenBitParameters) {
  EXPECT_EQ(optimizer_state_bytes(with(Optimizer::adamw_foreach), 1000, DType::fp32), Bytes(8000));
  EXPECT_EQ(optimizer_state_bytes(with(Optimizer::adamw_fused), 1000, DType::bf16), Bytes(12000));
  EXPECT_EQ(optimizer_state_bytes(with(Optimizer::sgd), 1000, DType::fp32), Bytes(0));
}

TEST(Optimizer, ForeachNeedsOneMoreCopyOfTheParametersForAMoment) {
  EXPECT_EQ(optimizer_workspace_bytes(with(Optimizer::adamw_foreach), 1000, DType::fp32), Bytes(4000));
  EXPECT_EQ(optimizer_workspace_bytes(with(Optimizer::adamw_fused), 1000, DType::fp32), Bytes(0));
}

TEST(Optimizer, NothingToUpdateIsNoOp) {
  for (const Optimizer optimizer : {Optimizer::adamw_foreach, Optimizer::adamw_fused, Optimizer::sgd}) {
    EXPECT_TRUE(optimizer_ops(with(optimizer), 0, 0, DType::fp32).empty());
  }
}

TEST(GradientScaling, UnscaleReadsAndWritesEveryGradientOnce) {
  const auto ops = unscale_ops(kElements, kTensors, DType::fp32);
  Bytes read, written;
  for (const Op& op : ops) {
    read += op.read;
    written += op.written;
  }
  EXPECT_NEAR(static_cast<double>(read.count()), 4.0 * kElements, 100);
  EXPECT_NEAR(static_cast<double>(written.count()), 4.0 * kElements, 100);
}

TEST(GradientClipping, ReadsForTheNormAndReadsAndWritesForTheScale) {
  Bytes read, written;
  for (const auto& ops :
       {grad_norm_ops(kElements, kTensors, DType::fp32), clip_ops(kElements, kTensors, DType::fp32)}) {
    for (const Op& op : ops) {
      read += op.read;
      written += op.written;
    }
  }
  EXPECT_NEAR(static_cast<double>(read.count()), 8.0 * kElements, 1e4);
  EXPECT_NEAR(static_cast<double>(written.count()), 4.0 * kElements, 1e4);
}

// 320 chunks of 65,536 elements, or so many tensors, fill a launch.
TEST(MultiTensor, LaunchesFollowChunksAndTensors) {
  EXPECT_EQ(multi_tensor_launches(1, 1, 110), 1);
  EXPECT_EQ(multi_tensor_launches(320 * 65536, 1, 110), 1);
  EXPECT_EQ(multi_tensor_launches(320 * 65536 + 1, 1, 110), 2);
  EXPECT_EQ(multi_tensor_launches(1000, 111, 110), 2);
  EXPECT_EQ(multi_tensor_launches(kElements, kTensors, 110), 6);
}

RC_GTEST_PROP(MultiTensor, MoreElementsOrTensorsNeverNeedFewerLaunches, ()) {
  const auto elements = *rc::gen::inRange<std::int64_t>(1, 1'000'000'000);
  const auto tensors = *rc::gen::inRange<std::int64_t>(1, 2000);
  const auto per_launch = *rc::gen::element<std::int64_t>(30, 36, 48, 64, 110);
  const int launches = multi_tensor_launches(elements, tensors, per_launch);
  RC_ASSERT(launches >= 1);
  RC_ASSERT(multi_tensor_launches(elements + 65536, tensors, per_launch) >= launches);
  RC_ASSERT(multi_tensor_launches(elements, tensors + 1, per_launch) >= launches);
}

}  // namespace
}  // namespace foretrain
