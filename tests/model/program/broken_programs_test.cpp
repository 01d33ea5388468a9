// check(StepProgram) finds what is broken and names ranks and instructions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/model/program/program_fixture.h"

namespace foretrain {
namespace {

using ::testing::HasSubstr;

StepProgram healthy() {
  TrainingSpec training = small_training(4);
  training.precision = Precision::fp16_amp;
  ParallelPlan plan;
  plan.pp = 3;
  plan.dp = 2;
  plan.tp = 2;
  return build(small_model(), training, plan);
}

std::size_t find(const RankClass& c, const std::string& label) {
  for (std::size_t i = 0; i < c.instructions.size(); ++i) {
    if (label_of(c.instructions[i]) == label) return i;
  }
  ADD_FAILURE() << "no " << label;
  return 0;
}

Instruction& item(StepProgram& p, std::size_t stage, const std::string& label) {
  return p.classes[stage].instructions[find(p.classes[stage], label)];
}

void erase(StepProgram& p, std::size_t stage, const std::string& label) {
  // Turned into a host-only instruction, so that ids stay.
  Instruction& i = item(p, stage, label);
  i.kind = InstructionKind::zero_grad;
  i.stream = StreamKind::compute;
}

struct Mutation {
  const char* name;
  std::function<void(StepProgram&)> apply;
  std::vector<const char*> parts;  // of the first message
};

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> list = {
      {"a send without its recv",
       [](StepProgram& p) { erase(p, 1, "Recv F2 mb1 <- stage 0"); },
       {"rank 0 (stage 0)", "\"Send F2 mb1 -> stage 1\"", "stage 1 never receives it"}},
      {"a recv without its send",
       [](StepProgram& p) { erase(p, 2, "Send B3 mb0 -> stage 1"); },
       {"rank 4 (stage 1)", "\"Recv B3 mb0 <- stage 2\"", "stage 2 never sends it"}},
      {"a transfer of another size",
       [](StepProgram& p) { item(p, 0, "Send F2 mb0 -> stage 1").payload += Bytes(8); },
       {"rank 0 (stage 0)", "does not fit", "rank 4 (stage 1)"}},
      {"a transfer of another type",
       [](StepProgram& p) { item(p, 0, "Send F2 mb0 -> stage 1").dtype = DType::bf16; },
       {"bf16", "does not fit"}},
      {"a tag used twice",
       [](StepProgram& p) {
         item(p, 0, "Send F2 mb1 -> stage 1").tag = item(p, 0, "Send F2 mb0 -> stage 1").tag;
       },
       {"rank 0 (stage 0)", "is used a second time"}},
      {"a stage that does not exist",
       [](StepProgram& p) { item(p, 0, "Send F2 mb0 -> stage 1").peer_stage = 7; },
       {"there is no stage 7"}},
      {"a transfer to itself",
       [](StepProgram& p) { item(p, 0, "Send F2 mb0 -> stage 1").peer_stage = 0; },
       {"its own stage"}},
      {"a collective one stage does not enter",
       [](StepProgram& p) { erase(p, 2, "AllReduce flag"); },
       {"over pp x tp", "rank 0 (stage 0)", "is entered, but not by stage 2"}},
      {"a collective of another size",
       [](StepProgram& p) { item(p, 1, "AllReduce flag").payload = Bytes(8); },
       {"differs", "rank 0 (stage 0)", "rank 4 (stage 1)"}},
      {"a collective of one rank",
       [](StepProgram& p) { item(p, 1, "AllReduce bucket 0").group = MeshDims{}; },
       {"group (self) has one member"}},
      {"an op list out of range",
       [](StepProgram& p) { item(p, 1, "F3.mb0").op_list = 9999; },
       {"rank 4 (stage 1)", "\"F3.mb0\"", "op list 9999"}},
      {"a dependency out of range",
       [](StepProgram& p) { p.classes[0].dependencies.front().instruction = InstructionId{100000}; },
       {"depends on instruction 100000"}},
      {"a dependency on an op out of range",
       [](StepProgram& p) {
         RankClass& c = p.classes[0];
         c.dependencies[static_cast<std::size_t>(item(p, 0, "AllReduce bucket 0").dependencies_begin)].op =
             12345;
       },
       {"\"AllReduce bucket 0\"", "depends on op 12345"}},
      {"a buffer out of range", [](StepProgram& p) { p.classes[1].allocates.front() = -5; }, {"buffer -5"}},
      {"a buffer allocated twice",
       [](StepProgram& p) { p.classes[1].allocates[1] = p.classes[1].allocates[0]; },
       {"a second time"}},
      {"a buffer freed before it exists",
       [](StepProgram& p) {
         RankClass& c = p.classes[1];
         std::reverse(c.frees.begin(), c.frees.end());
       },
       {"which is not allocated"}},
      {"a tensor table out of range",
       [](StepProgram& p) { p.op_lists[0].tensor_table = 55; },
       {"tensor table 55"}},
      {"a tensor out of range",
       [](StepProgram& p) { p.op_lists[0].ops[0].frees.push_back(100000); },
       {"names tensor 100000"}},
      {"a class too few", [](StepProgram& p) { p.classes.pop_back(); }, {"2 rank classes", "3"}},
      {"a range outside its array",
       [](StepProgram& p) { item(p, 0, "F1.mb0").frees_end = 1000000; },
       {"\"F1.mb0\"", "freed buffers"}},
  };
  return list;
}

TEST(BrokenPrograms, EveryDefectIsNamed) {
  for (const Mutation& mutation : mutations()) {
    SCOPED_TRACE(mutation.name);
    StepProgram program = healthy();
    mutation.apply(program);
    const Errors errors = check(program);
    ASSERT_FALSE(errors.empty());
    for (const char* part : mutation.parts) {
      EXPECT_TRUE(std::any_of(errors.begin(), errors.end(),
                              [&](const Error& e) { return e.message.find(part) != std::string::npos; }))
          << part << "\n"
          << to_text(errors);
    }
  }
}

TEST(BrokenPrograms, ADependencyCycleIsADeadlock) {
  StepProgram program = healthy();
  RankClass& c = program.classes[1];
  const std::size_t forward = find(c, "F3.mb0");
  const std::size_t backward = find(c, "B3.mb0");
  // The forward's dependency (its received input) becomes its own backward.
  c.dependencies[static_cast<std::size_t>(c.instructions[forward].dependencies_begin)].instruction =
      InstructionId{static_cast<std::int32_t>(backward)};
  const Errors errors = check(program);
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(to_text(errors), HasSubstr("\"F3.mb0\" waits forever for instruction"));
  EXPECT_THAT(to_text(errors), HasSubstr("\"B3.mb0\""));
}

TEST(BrokenPrograms, TransfersInAnotherOrderAtTheTwoEndsAreADeadlock) {
  StepProgram program = healthy();
  Instruction& a = item(program, 1, "Recv F2 mb0 <- stage 0");
  Instruction& b = item(program, 1, "Recv F2 mb1 <- stage 0");
  std::swap(a.tag, b.tag);
  std::swap(a.micro_batch, b.micro_batch);
  const Errors errors = check(program);
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(to_text(errors), HasSubstr("waits forever for stage 0"));
  EXPECT_THAT(to_text(errors), HasSubstr("waits forever for stage 1"));
}

TEST(BrokenPrograms, ACollectiveThatOneStageEntersTooEarlyIsADeadlock) {
  // Stage 1 enters the flag before its first forward, the other stages after their last backward.
  StepProgram program = healthy();
  for (std::size_t stage = 0; stage < 3; ++stage)
    item(program, stage, "AllReduce flag").stream = StreamKind::copy;
  RankClass& c = program.classes[1];
  const std::size_t flag = find(c, "AllReduce flag");
  c.instructions[flag].dependencies_end = c.instructions[flag].dependencies_begin;
  Instruction& forward = item(program, 1, "F3.mb0");
  c.dependencies.push_back({InstructionId{static_cast<std::int32_t>(flag)}, -1});
  forward.dependencies_begin = static_cast<std::int32_t>(c.dependencies.size()) - 1;
  forward.dependencies_end = static_cast<std::int32_t>(c.dependencies.size());
  const Errors errors = check(program);
  ASSERT_FALSE(errors.empty());
  EXPECT_THAT(to_text(errors), HasSubstr("rank 4 (stage 1)"));
  EXPECT_THAT(to_text(errors), HasSubstr("waits forever for the other members of its group over pp x tp"));
}

TEST(BrokenPrograms, ManyDefectsStayReadable) {
  StepProgram program = healthy();
  for (Instruction& i : program.classes[1].instructions) i.op_list = 9999;
  EXPECT_LE(check(program).size(), 50u);
}

TEST(Labels, AreShortAndSayWhere) {
  const StepProgram program = healthy();
  const RankClass& c = program.classes[1];
  std::vector<std::string> all = labels(c, [](const Instruction&) { return true; });
  for (const char* expected : {"F3.mb0", "B3.mb3", "Send F3 mb0 -> stage 2", "Recv B3 mb1 <- stage 2",
                               "AllReduce bucket 0", "Unscale", "OptimizerStep", "ZeroGrad"}) {
    EXPECT_NE(std::find(all.begin(), all.end(), expected), all.end()) << expected;
  }
  EXPECT_EQ(name_of(InstructionKind::device_to_host), "device_to_host");
  EXPECT_EQ(name_of(InstructionKind::forward), "forward");
  EXPECT_EQ(name_of(InstructionKind::all_reduce_flag), "all_reduce_flag");
  EXPECT_EQ(name_of(StreamKind::copy), "copy");
}

}  // namespace
}  // namespace foretrain
