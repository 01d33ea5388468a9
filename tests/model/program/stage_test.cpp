#include "model/program/stage.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/model/program/program_fixture.h"

namespace foretrain {
namespace {

std::vector<std::pair<int, int>> ranges(std::int64_t layers, int pp, int chunks) {
  ParallelPlan plan;
  plan.pp = pp;
  plan.virtual_stages = chunks;
  std::vector<std::pair<int, int>> out;
  for (const BlockRange& r : partition_blocks(small_model(layers), plan)) out.emplace_back(r.begin, r.end);
  return out;
}

TEST(Partition, EmbeddingIsFirstHeadIsLastAndLayersAreSplitEvenly) {
  // Block 0 is the embedding, blocks 1 to 8 are layers, block 9 is the head.
  EXPECT_EQ(ranges(8, 1, 1), (std::vector<std::pair<int, int>>{{0, 10}}));
  EXPECT_EQ(ranges(8, 4, 1), (std::vector<std::pair<int, int>>{{0, 3}, {3, 5}, {5, 7}, {7, 10}}));
  EXPECT_EQ(ranges(8, 2, 2), (std::vector<std::pair<int, int>>{{0, 3}, {3, 5}, {5, 7}, {7, 10}}));
}

TEST(Partition, FirstPartsTakeOneLayerMoreWhenTheyDoNotDivide) {
  EXPECT_EQ(ranges(7, 3, 1), (std::vector<std::pair<int, int>>{{0, 4}, {4, 6}, {6, 9}}));
}

TEST(Stage, InterleavedStageHoldsEveryPpThPart) {
  ParallelPlan plan;
  plan.pp = 2;
  plan.virtual_stages = 2;
  plan.schedule = PipelineSchedule::interleaved;
  const Stage first = make_stage(small_model(8), small_training(2), plan, 0);
  EXPECT_EQ(first.blocks, (std::vector<std::int32_t>{0, 1, 2, 5, 6}));
  EXPECT_TRUE(first.holds_embedding);
  EXPECT_FALSE(first.holds_head);
  const Stage second = make_stage(small_model(8), small_training(2), plan, 1);
  EXPECT_EQ(second.blocks, (std::vector<std::int32_t>{3, 4, 7, 8, 9}));
  EXPECT_TRUE(second.is_last_part(1));
  EXPECT_FALSE(second.is_last_part(0));
}

TEST(Stage, BackwardsGoThroughBlocksInReverseAndKnowTheFirstAndLastMicroBatch) {
  const Stage stage = make_stage(small_model(2), small_training(2), ParallelPlan{}, 0);
  std::vector<int> backward;
  for (const ComputeStep& step : stage.steps) {
    if (step.forward) continue;
    backward.push_back(step.block);
    EXPECT_EQ(step.first_backward, step.micro_batch == 0);
    EXPECT_EQ(step.last_backward, step.micro_batch == 1);
  }
  EXPECT_EQ(backward, (std::vector<int>{3, 2, 1, 0, 3, 2, 1, 0}));
}

}  // namespace
}  // namespace foretrain
