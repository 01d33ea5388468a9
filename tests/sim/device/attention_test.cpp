#include "sim/device/attention.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <string>

namespace foretrain {
namespace {

AttentionShape shape_of(std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t kv_heads,
                        std::int64_t head_dim, bool causal) {
  AttentionShape shape;
  shape.batch = batch;
  shape.query_length = shape.key_length = length;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = head_dim;
  shape.causal = causal;
  shape.dtype = DType::fp16;
  return shape;
}
constexpr auto kForward = AttentionPass::forward;
constexpr auto kBackward = AttentionPass::backward;
double us(const AttentionShape& shape, AttentionPass pass = kForward, const char* gpu = "a30") {
  return attention_time(*find_gpu(gpu), shape, pass).us();
}

TEST(AttentionFlops, CountVisiblePairsInClosedForm) {
  // Causal: s (s + 1) / 2 pairs; 4 d flops a pair forward, 10 d backward.
  const double pairs = 512.0 * 513 / 2;
  EXPECT_NEAR(attention_flops(shape_of(2, 512, 12, 12, 64, true), kForward).count(), 4 * 64 * pairs * 24, 1);
  EXPECT_NEAR(attention_flops(shape_of(2, 512, 12, 12, 64, true), kBackward).count(), 10 * 64 * pairs * 24,
              1);
  EXPECT_NEAR(attention_flops(shape_of(2, 512, 12, 12, 64, false), kForward).count(),
              4 * 64 * 512.0 * 512 * 24, 1);
  // A causal window of 100: each query sees itself and 100 before.
  AttentionShape window = shape_of(1, 1000, 1, 1, 64, true);
  window.window = 100;
  EXPECT_NEAR(attention_flops(window, kForward).count(), 4 * 64 * (101.0 * 1000 - 100.0 * 101 / 2), 1);
}

TEST(AttentionFlops, ADecodingQuerySeesTheWholeCache) {
  AttentionShape decode = shape_of(1, 1000, 8, 8, 64, true);
  decode.query_length = 1;
  EXPECT_NEAR(attention_flops(decode, kForward).count(), 4 * 64 * 1000.0 * 8, 1);
}

TEST(Attention, LongCausalTakesHalfOfTheFullSquare) {
  const double ratio = us(shape_of(1, 65536, 16, 16, 128, true)) / us(shape_of(1, 65536, 16, 16, 128, false));
  EXPECT_NEAR(ratio, 0.5, 0.01);
}

TEST(Attention, TimeOfAWindowGrowsWithLengthNotItsSquare) {
  const auto windowed = [](std::int64_t length) {
    AttentionShape shape = shape_of(4, length, 32, 32, 128, true);
    shape.window = 1024;
    return us(shape);
  };
  EXPECT_NEAR(windowed(32768) / windowed(16384), 2, 0.1);
}

TEST(Attention, BackwardTakesMoreThanTwiceTheForward) {
  const AttentionShape shape = shape_of(4, 4096, 32, 32, 128, true);
  const double ratio = us(shape, kBackward, "a100_80_sxm") / us(shape, kForward, "a100_80_sxm");
  EXPECT_GT(ratio, 2);
  EXPECT_LT(ratio, 4);
}

TEST(Attention, EmptyShapesTakeNoTime) {
  EXPECT_EQ(attention_time(*find_gpu("a30"), shape_of(1, 0, 1, 1, 64, true), kForward), Time{});
  EXPECT_EQ(attention_flops(shape_of(0, 512, 1, 1, 64, true), kForward).count(), 0);
}

struct Measured {
  std::int64_t batch, length, head_dim, left;
  bool causal;
  double us;
};
// Published nvbench measurements of FlashAttention forward on an A30, 32 heads, 8 key-value heads.
TEST(Attention, DefaultsPredictMeasuredA30Times) {
  constexpr std::array rows{
      Measured{2, 512, 128, -1, true, 103.276},      Measured{2, 4096, 128, -1, true, 2820.715},
      Measured{2, 32768, 128, -1, true, 170268.207}, Measured{1, 2048, 160, -1, true, 561.575},
      Measured{16, 4096, 56, -1, false, 28702.726},  Measured{16, 4096, 56, 128, true, 3024.365},
      Measured{16, 4096, 80, -1, true, 18974.416},   Measured{16, 4096, 80, 1024, true, 10324.362}};
  double sum = 0;
  for (const Measured& row : rows) {
    const AttentionShape shape = shape_of(row.batch, row.length, 32, 8, row.head_dim, row.causal);
    const auto& p =
        default_kernel_parameters(KernelKind::attention_forward, GpuArchitecture::ampere).parameters;
    const AttentionWindow window{row.left, row.causal ? 0 : -1};
    const double predicted = attention_time(*find_gpu("a30"), shape, window, kForward, p).us();
    sum += std::abs(predicted / row.us - 1);
    EXPECT_NEAR(predicted / row.us, 1, 0.2) << row.length << " " << row.head_dim;
  }
  EXPECT_LT(sum / rows.size(), 0.08);
}

RC_GTEST_PROP(Attention, IsNeverFasterThanPeakOnTheVisiblePairs, ()) {
  AttentionShape shape =
      shape_of(*rc::gen::inRange<std::int64_t>(1, 8), *rc::gen::inRange<std::int64_t>(1, 20000),
               *rc::gen::inRange<std::int64_t>(1, 64), 1, *rc::gen::inRange<std::int64_t>(1, 256),
               *rc::gen::arbitrary<bool>());
  shape.window = *rc::gen::inRange<std::int64_t>(0, 5000);
  const auto pass = *rc::gen::element(kForward, kBackward);
  const GpuSpec& gpu = *find_gpu(*rc::gen::element<std::string>("a30", "a100_80_sxm", "b200", "h100_sxm"));
  const double seconds = attention_time(gpu, shape, pass).seconds();
  RC_ASSERT(seconds * 1.001 >= attention_flops(shape, pass).count() / gpu.fp16.per_s());
}

}  // namespace
}  // namespace foretrain
