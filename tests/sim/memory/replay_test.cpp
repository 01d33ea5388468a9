// Hand-made programs: every expected peak is the sum written next to it. All sizes are multiples of 512 B up
// to 1 MiB, so that blocks are exactly as large as the tensors.
#include "sim/memory/replay.h"

#include <gtest/gtest.h>

namespace foretrain {
namespace {

constexpr std::int64_t kKi = 1024;

Bytes at(const std::array<Bytes, kMemoryClasses>& classes, MemoryClass which) {
  return classes[static_cast<std::size_t>(which)];
}

// One block of one layer: the forward makes `saved` and `output` and a temporary, the backward frees `saved`.
class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() {
    program.tensor_tables.push_back({{"saved", Bytes(64 * kKi), DType::fp32, MemoryClass::activations},
                                     {"temporary", Bytes(32 * kKi), DType::fp32, MemoryClass::activations},
                                     {"output", Bytes(16 * kKi), DType::fp32, MemoryClass::activations}});
    OpList forward;
    forward.tensor_table = 0;
    Op first, second;
    first.allocates = {0, 1};
    second.allocates = {2};
    second.frees = {1};
    forward.ops = {first, second};
    OpList backward;
    backward.tensor_table = 0;
    Op third, fourth;
    third.completes = {0};
    fourth.completes = {1};
    fourth.frees = {0};
    backward.ops = {third, fourth};
    program.op_lists = {forward, backward};
    program.blocks.resize(1);
    program.blocks[0].gradient_bytes = {Bytes(8 * kKi), Bytes(4 * kKi)};
    program.classes.resize(1);
  }

  Instruction& add(InstructionKind kind, std::int32_t op_list, std::int32_t micro_batch) {
    Instruction i;
    i.kind = kind;
    i.op_list = op_list;
    i.block = 0;
    i.micro_batch = micro_batch;
    rank().instructions.push_back(i);
    return rank().instructions.back();
  }
  RankClass& rank() { return program.classes[0]; }
  void frees_output(Instruction& i) {
    i.tensor_frees_begin = static_cast<std::int32_t>(rank().tensor_frees.size());
    rank().tensor_frees.push_back({0, 2});
    i.tensor_frees_end = i.tensor_frees_begin + 1;
  }
  MemoryReplay replay(const ReplayOptions& options = {}) {
    return replay_memory(program, rank(), issue_order(program, rank()), options);
  }

  StepProgram program;
};

TEST_F(ReplayTest, ForwardPeaksWhileItsTemporaryLives) {
  add(InstructionKind::forward, 0, 0);
  const MemoryReplay r = replay();
  EXPECT_EQ(r.peak_allocated, Bytes((64 + 32 + 16) * kKi));
  EXPECT_EQ(r.peak_reserved, Bytes(2048 * kKi));  // one small segment
  EXPECT_EQ(r.micro_batches_in_flight, 1);
}

TEST_F(ReplayTest, EveryMicroBatchHasTensorsOfItsOwn) {
  for (std::int32_t m = 0; m < 3; ++m) add(InstructionKind::forward, 0, m);
  const MemoryReplay r = replay();
  EXPECT_EQ(r.peak_allocated, Bytes((2 * (64 + 16) + 64 + 32 + 16) * kKi));
  EXPECT_EQ(r.micro_batches_in_flight, 3);
}

TEST_F(ReplayTest, BackwardFreesWhatForwardSavedAndGradientsStay) {
  for (std::int32_t m = 0; m < 2; ++m) {
    add(InstructionKind::forward, 0, m);
    frees_output(add(InstructionKind::backward, 1, m));
  }
  const MemoryReplay r = replay();
  // Second forward: 12 KiB of gradients are there already; the second backward adds none.
  EXPECT_EQ(r.peak_allocated, Bytes((64 + 32 + 16 + 12) * kKi));
  EXPECT_EQ(at(r.at_peak, MemoryClass::gradients), Bytes(12 * kKi));
  EXPECT_EQ(at(r.peak_of_class, MemoryClass::gradients), Bytes(12 * kKi));
  EXPECT_EQ(r.micro_batches_in_flight, 1);
}

TEST_F(ReplayTest, ZeroGradFreesGradients) {
  add(InstructionKind::forward, 0, 0);
  frees_output(add(InstructionKind::backward, 1, 0));
  add(InstructionKind::zero_grad, -1, -1);
  add(InstructionKind::forward, 0, 1);
  EXPECT_EQ(replay().peak_allocated, Bytes((64 + 32 + 16) * kKi));
}

TEST_F(ReplayTest, PreallocatedGradientsAddNothing) {
  rank().gradients = GradientAllocation::preallocated;
  add(InstructionKind::forward, 0, 0);
  add(InstructionKind::backward, 1, 0);
  EXPECT_EQ(at(replay().peak_of_class, MemoryClass::gradients), Bytes(0));
}

TEST_F(ReplayTest, BuffersLiveFromTheirInstructionToTheirLastOne) {
  rank().buffers = {{"weights", Bytes(100 * kKi), MemoryClass::parameters, true, 1},
                    {"bucket", Bytes(200 * kKi), MemoryClass::communication, false, 1}};
  rank().allocates = {1};
  rank().frees = {1};
  Instruction& a = add(InstructionKind::all_reduce_grads, -1, -1);
  a.allocates_end = 1;
  a.frees_end = 1;
  add(InstructionKind::forward, 0, 0);
  const MemoryReplay r = replay();
  EXPECT_EQ(r.peak_allocated, Bytes(300 * kKi));
  EXPECT_EQ(at(r.at_peak, MemoryClass::communication), Bytes(200 * kKi));
  EXPECT_EQ(at(r.at_peak, MemoryClass::parameters), Bytes(100 * kKi));
  EXPECT_EQ(at(r.peak_of_class, MemoryClass::activations), Bytes((64 + 32 + 16) * kKi));
}

TEST_F(ReplayTest, BufferOfManyTensorsIsRoundedTensorByTensor) {
  rank().buffers = {{"biases", Bytes(3 * 100), MemoryClass::parameters, true, 3}};
  EXPECT_EQ(replay().peak_allocated, Bytes(3 * 512));
}

TEST_F(ReplayTest, WorkspacesAreOnePerThreadThatMultiplies) {
  program.op_lists[0].ops[0].kind = OpKind::matmul;
  program.op_lists[1].ops[0].kind = OpKind::matmul;
  ReplayOptions options;
  options.constant = Bytes(10 * kKi);
  options.matmul_workspace = Bytes(300 * kKi);
  add(InstructionKind::forward, 0, 0);
  EXPECT_EQ(at(replay(options).peak_of_class, MemoryClass::workspace), Bytes(310 * kKi));
  add(InstructionKind::backward, 1, 0);
  EXPECT_EQ(at(replay(options).peak_of_class, MemoryClass::workspace), Bytes(610 * kKi));
}

TEST_F(ReplayTest, CublasWorkspaceIsPyTorchsDefault) {
  EXPECT_EQ(cublas_workspace(GpuArchitecture::ampere), Bytes(8519680));
  EXPECT_EQ(cublas_workspace(GpuArchitecture::hopper), Bytes(33554432));
}

TEST_F(ReplayTest, MoreThanTheDeviceHasIsReported) {
  rank().buffers = {{"weights", Bytes(64 << 20), MemoryClass::parameters, true, 1}};
  ReplayOptions options;
  options.capacity = Bytes(32 << 20);
  EXPECT_TRUE(replay(options).exceeded);
  options.capacity = Bytes(64 << 20);
  EXPECT_FALSE(replay(options).exceeded);
}

TEST_F(ReplayTest, MemoryOverTimeEndsWhereTheStepLeavesIt) {
  add(InstructionKind::forward, 0, 0);
  frees_output(add(InstructionKind::backward, 1, 0));
  ReplayOptions options;
  options.over_time = true;
  const MemoryReplay r = replay(options);
  ASSERT_FALSE(r.over_time.empty());
  EXPECT_EQ(r.over_time.back().second, 12 * kKi);  // gradients
}

}  // namespace
}  // namespace foretrain
