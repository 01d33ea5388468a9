// Hand-made programs whose times are worked out next to them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "sim/engine/simulate.h"
#include "tests/sim/engine/hand_made.h"

namespace foretrain {
namespace {

using hand_made::Draft;
using hand_made::Program;

constexpr std::int64_t kUs = 1'000'000;  // ps

Expected<SimulationResult> run(const Program& program, const Profile& profile = hand_made::plain_profile(),
                               const SimulationOptions& options = {}) {
  const auto simulator = Simulator::create(program.program, hand_made::cluster(program.program.mesh.world()));
  if (!simulator) return tl::unexpected(simulator.error());
  return simulator->run(profile, options);
}

Time step_time(const Program& program, const Profile& profile = hand_made::plain_profile()) {
  const auto result = run(program, profile);
  EXPECT_TRUE(result.has_value()) << to_text(result.error());
  for (const RankBreakdown& b : result->breakdown) EXPECT_EQ(b.total(), result->step_time);
  return result->step_time;
}

Mesh data_parallel(std::int32_t ranks) { return Mesh{{1, ranks, 1, 1}}; }
Mesh pipeline(std::int32_t stages) { return Mesh{{stages, 1, 1, 1}}; }

Draft all_reduce(Bytes bytes, std::vector<Dependency> after = {}) {
  Draft draft;
  draft.kind = InstructionKind::all_reduce_grads;
  draft.stream = StreamKind::data_parallel;
  draft.group = mesh_dims(MeshDim::dp);
  draft.payload = bytes;
  draft.after = std::move(after);
  return draft;
}

Draft transfer(InstructionKind kind, std::int32_t peer, std::int32_t tag, Bytes bytes = Bytes(0)) {
  Draft draft;
  draft.kind = kind;
  draft.stream = kind == InstructionKind::send ? StreamKind::pipeline_send : StreamKind::pipeline_recv;
  draft.peer = peer;
  draft.tag = tag;
  draft.payload = bytes;
  return draft;
}

// --- Host and device
// -----------------------------------------------------------------------------------------

// The whole rank kernel by kernel.
std::int64_t recurrence(const std::vector<std::vector<Op>>& lists, std::int64_t launch_ps) {
  std::int64_t host = 0, device = 0;
  for (const auto& ops : lists) {
    for (const Op& op : ops) {
      const std::int64_t each = op.read.count() / op.launches;
      for (int k = 0; k < op.launches; ++k) {
        host += launch_ps;
        device = std::max(device, host) + (k == 0 ? op.read.count() - each * (op.launches - 1) : each);
      }
      if (op.kind == OpKind::host_sync) host = std::max(host, device);
    }
  }
  return std::max(host, device);
}

RC_GTEST_PROP(Engine, HostBoundOrNotTheStepEqualsTheRecurrenceKernelByKernel, ()) {
  const auto any_op = rc::gen::exec([] {
    if (*rc::gen::inRange(0, 12) == 0) return hand_made::sync();
    return hand_made::op(*rc::gen::inRange<std::int64_t>(1, 20 * kUs), *rc::gen::inRange(1, 4));
  });
  const auto lists = *rc::gen::container<std::vector<std::vector<Op>>>(
      rc::gen::nonEmpty(rc::gen::container<std::vector<Op>>(any_op)));
  RC_PRE(!lists.empty());
  Program program;
  for (const auto& ops : lists) {
    Draft draft;
    draft.op_list = program.list(ops);
    program.add(0, draft);
  }
  Profile profile = hand_made::plain_profile();
  profile.at(ParameterId::host_time_per_op_us).value = 5;
  const auto result = run(program, profile);
  RC_ASSERT(result.has_value());
  RC_ASSERT(result->step_time.ps() == recurrence(lists, 5 * kUs));
  RC_ASSERT(result->breakdown[0].total() == result->step_time);
  std::int64_t work = 0;
  for (const auto& ops : lists) {
    for (const Op& op : ops) work += op.read.count();
  }
  RC_ASSERT(result->breakdown[0].compute.ps() == work);
  RC_ASSERT(result->breakdown[0].host.ps() == result->step_time.ps() - work);
}

TEST(Engine, InstructionThatBlocksTheHostDelaysTheNextLaunch) {
  Program program;
  Draft first;
  first.op_list = program.list({hand_made::op(100 * kUs)});
  first.blocks_host = true;
  program.add(0, first);
  program.compute(0, 10 * kUs);
  Profile profile = hand_made::plain_profile();
  profile.at(ParameterId::host_time_per_op_us).value = 7;
  EXPECT_EQ(step_time(program, profile).ps(), (7 + 100 + 7 + 10) * kUs);
}

TEST(Engine, StreamsRunBesideOneAnotherAndDependenciesWait) {
  Program program;
  const auto a = program.compute(0, 100);
  Draft beside;
  beside.stream = StreamKind::copy;
  beside.op_list = program.list({hand_made::op(250)});
  const auto b = program.add(0, beside);
  program.compute(0, 30, {{b, -1}});
  EXPECT_EQ(step_time(program).ps(), 280);
  static_cast<void>(a);
}

TEST(Engine, DependencyOnAnOpWaitsForThatOpOnly) {
  Program program;
  Draft three;
  three.op_list = program.list({hand_made::op(100), hand_made::op(200), hand_made::op(400)});
  const auto list = program.add(0, three);
  Draft hooked;
  hooked.stream = StreamKind::copy;
  hooked.op_list = program.list({hand_made::op(1000)});
  hooked.after = {{list, 1}};
  program.add(0, hooked);
  EXPECT_EQ(step_time(program).ps(), 300 + 1000);
}

TEST(Engine, HookTakesHostTimeWhereTheOpIsIssued) {
  // Three ops of 1 us with 10 us of host time each: host-bound. After the first, the host issues the hooked
  // instruction (10 us): the second op is issued at 30 us instead of 20.
  Program program;
  Draft three;
  three.op_list = program.list({hand_made::op(kUs), hand_made::op(kUs), hand_made::op(kUs)});
  const auto list = program.add(0, three);
  Draft hooked;
  hooked.stream = StreamKind::copy;
  hooked.op_list = program.list({hand_made::op(2 * kUs)});
  hooked.after = {{list, 0}};
  program.add(0, hooked);
  Profile profile = hand_made::plain_profile();
  profile.at(ParameterId::host_time_per_op_us).value = 10;
  EXPECT_EQ(step_time(program, profile).ps(), 41 * kUs);
}

// --- Communication
// -------------------------------------------------------------------------------------------

// Time of one all-reduce alone.
std::int64_t alone(Bytes bytes, const Profile& profile = hand_made::plain_profile()) {
  Program program(data_parallel(2));
  program.add(0, all_reduce(bytes));
  return step_time(program, profile).ps();
}

// A backward of n ops of `each`, with a bucket after every op.
Program overlapped(int n, std::int64_t each, Bytes bucket) {
  Program program(data_parallel(2));
  Draft backward;
  backward.kind = InstructionKind::backward;
  backward.op_list = program.list(std::vector<Op>(static_cast<std::size_t>(n), hand_made::op(each)));
  const auto id = program.add(0, backward);
  for (int i = 0; i < n; ++i) program.add(0, all_reduce(bucket, {{id, i}}));
  return program;
}

TEST(Engine, ComputeBoundOverlapExposesOnlyTheLastBucket) {
  const Bytes bucket(4 << 20);
  const std::int64_t c = alone(bucket);
  const auto result = run(overlapped(6, 3 * c, bucket));
  EXPECT_EQ(result->step_time.ps(), 6 * 3 * c + c);
  EXPECT_EQ(result->breakdown[0].exposed_communication.ps(), c);
  EXPECT_EQ(result->breakdown[0].overlapped_communication.ps(), 5 * c);
}

TEST(Engine, CommunicationBoundOverlapTakesTheFirstOpAndAllBuckets) {
  const Bytes bucket(4 << 20);
  const std::int64_t c = alone(bucket);
  const std::int64_t each = c / 4;
  EXPECT_EQ(step_time(overlapped(6, each, bucket)).ps(), each + 6 * c);
}

TEST(Engine, InterferenceTakesItsFractionOfTheCommunicationsTimeFromTheComputing) {
  const Bytes bucket(4 << 20);
  const std::int64_t c = alone(bucket);
  Profile profile = hand_made::plain_profile();
  for (const double f : {0.25, 0.5, 1.0}) {
    profile.at(ParameterId::communication_interference).value = f;
    // Five buckets are hidden behind compute and cost it f of their time; the last one is exposed.
    const auto result = run(overlapped(6, 3 * c, bucket), profile);
    const double expected =
        18.0 * static_cast<double>(c) + 5 * f * static_cast<double>(c) + static_cast<double>(c);
    EXPECT_NEAR(static_cast<double>(result->step_time.ps()), expected, 20.0);
    EXPECT_EQ(result->breakdown[0].total(), result->step_time);
    EXPECT_EQ(result->breakdown[0].compute.ps(), 18 * c);
    EXPECT_NEAR(static_cast<double>(result->breakdown[0].overlapped_communication.ps()),
                5 * (1 - f) * static_cast<double>(c), 20.0);
  }
}

TEST(Engine, CollectiveInsideAnOpListBlocksTheStream) {
  const Bytes bytes(1 << 20);
  Program one(Mesh{{1, 1, 1, 2}});
  Draft list;
  list.op_list = one.list({hand_made::op(500),
                           hand_made::collective(CollectiveKind::all_reduce, mesh_dims(MeshDim::tp), bytes),
                           hand_made::op(300)});
  one.add(0, list);
  const auto result = run(one);
  EXPECT_EQ(result->step_time.ps(), 800 + alone(bytes));
  EXPECT_EQ(result->breakdown[0].exposed_communication.ps(), alone(bytes));
}

TEST(Engine, GroupsOfOneRankCostNothing) {
  Program program(data_parallel(1));
  program.compute(0, 100);
  program.add(0, all_reduce(Bytes(1 << 20)));
  EXPECT_EQ(step_time(program).ps(), 100);
}

TEST(Engine, CommunicationIsNeverFasterThanItsLowerBound) {
  for (const std::int64_t mib : {1, 16, 256}) {
    Program program(data_parallel(4));
    program.add(0, all_reduce(Bytes(mib << 20)));
    const auto result = run(program);
    EXPECT_GT(result->collective_lower_bound, Time{});
    EXPECT_GE(result->step_time, result->collective_lower_bound);
  }
}

TEST(Engine, ReceiverWaitsForTheSendersWorkAsBubbleAndForTheBytesAsCommunication) {
  Program program(pipeline(2));
  const Bytes bytes(8 << 20);
  const auto work = program.compute(0, 1000 * kUs);
  Draft send = transfer(InstructionKind::send, 1, 0, bytes);
  send.after = {{work, -1}};
  program.add(0, send);
  const auto received = program.add(1, transfer(InstructionKind::recv, 0, 0, bytes));
  program.compute(1, 500 * kUs, {{received, -1}});
  const auto result = run(program);
  const RankBreakdown& second = result->breakdown[1];
  EXPECT_EQ(second.bubble.ps(), 1000 * kUs);
  EXPECT_EQ(second.compute.ps(), 500 * kUs);
  EXPECT_GT(second.exposed_communication, Time{});
  EXPECT_EQ(second.total(), result->step_time);
  EXPECT_EQ(result->breakdown[0].total(), result->step_time);
}

TEST(Engine, CollectiveOverAllStagesStartsWhenTheLastArrives) {
  Program program(pipeline(3));
  for (std::size_t s = 0; s < 3; ++s) {
    const auto work = program.compute(s, 100 * static_cast<std::int64_t>(s + 1));
    Draft flag;
    flag.kind = InstructionKind::all_reduce_flag;
    flag.group = kAllDims;
    flag.after = {{work, -1}};
    program.add(s, flag);
    program.compute(s, 50);
  }
  const auto result = run(program);
  EXPECT_EQ(result->step_time.ps(), 350);
  EXPECT_EQ(result->breakdown[0].bubble.ps(), 200);
  EXPECT_EQ(result->breakdown[2].bubble.ps(), 0);
}

// --- Deadlock
// ------------------------------------------------------------------------------------------------

std::string deadlock_of(const Program& program) {
  const auto result = run(program);
  EXPECT_FALSE(result.has_value());
  if (result) return {};
  EXPECT_EQ(result.error().front().code, ErrorCode::infeasible);
  return result.error().front().message;
}

TEST(Deadlock, BlockingReceivesOnBothSidesAreNamed) {
  Program program(pipeline(2));
  for (std::int32_t s = 0; s < 2; ++s) {
    Draft recv = transfer(InstructionKind::recv, 1 - s, s);
    recv.blocks_host = true;
    program.add(static_cast<std::size_t>(s), recv);
    program.add(static_cast<std::size_t>(s), transfer(InstructionKind::send, 1 - s, 1 - s));
  }
  const std::string message = deadlock_of(program);
  for (const Instruction* i :
       {&program.program.classes[0].instructions[0], &program.program.classes[1].instructions[0]}) {
    EXPECT_NE(message.find(label_of(*i)), std::string::npos) << message;
  }
  EXPECT_NE(message.find("rank 0 (stage 0)"), std::string::npos) << message;
  EXPECT_NE(message.find("rank 1 (stage 1)"), std::string::npos) << message;
  EXPECT_NE(message.find("for stage 1 to send"), std::string::npos) << message;
}

TEST(Deadlock, SendThatNobodyReceivesIsNamed) {
  Program program(pipeline(2));
  program.add(0, transfer(InstructionKind::send, 1, 7));
  program.compute(1, 100);
  const std::string message = deadlock_of(program);
  EXPECT_NE(message.find("for stage 1 to receive (tag 7)"), std::string::npos) << message;
  EXPECT_EQ(message.find("stage 1) wait"), std::string::npos) << message;
}

TEST(Deadlock, CollectiveThatOneStageNeverEntersNamesThatStage) {
  Program program(pipeline(3));
  for (const std::size_t s : {0, 2}) {
    Draft flag;
    flag.kind = InstructionKind::all_reduce_flag;
    flag.group = kAllDims;
    program.add(s, flag);
  }
  program.compute(1, 10);
  const std::string message = deadlock_of(program);
  EXPECT_NE(message.find("rank 0 (stage 0)"), std::string::npos) << message;
  EXPECT_NE(message.find("for rank 1"), std::string::npos) << message;
}

TEST(Deadlock, CycleOfDependenciesIsNamed) {
  Program program;
  Draft first;
  first.op_list = program.list({hand_made::op(10)});
  first.after = {{InstructionId{1}, -1}};
  first.block = 3;
  program.add(0, first);
  Draft second;
  second.stream = StreamKind::copy;
  second.op_list = first.op_list;
  second.after = {{InstructionId{0}, -1}};
  program.add(0, second);
  const std::string message = deadlock_of(program);
  EXPECT_NE(message.find(label_of(program.program.classes[0].instructions[0])), std::string::npos) << message;
}

TEST(Deadlock, RanksOfAStageAreNamedAsARange) {
  Program program(Mesh{{2, 2, 1, 2}});
  program.add(1, transfer(InstructionKind::recv, 0, 0));
  EXPECT_NE(deadlock_of(program).find("ranks 4-7 (stage 1)"), std::string::npos);
}

TEST(Simulator, MoreRanksThanGpusIsAnError) {
  Program program(data_parallel(4));
  program.compute(0, 10);
  const auto simulator = Simulator::create(program.program, hand_made::cluster(2));
  ASSERT_FALSE(simulator.has_value());
  EXPECT_EQ(simulator.error().front().code, ErrorCode::infeasible);
  EXPECT_NE(simulator.error().front().message.find("needs 4 GPUs"), std::string::npos);
}

TEST(Simulator, IndicesOutOfRangeAreErrors) {
  Program list;
  Draft draft;
  draft.op_list = 5;
  list.add(0, draft);
  EXPECT_FALSE(run(list).has_value());
  Program peer(pipeline(2));
  peer.add(0, transfer(InstructionKind::send, 9, 0));
  EXPECT_FALSE(run(peer).has_value());
  Program dependency;
  dependency.compute(0, 10, {{InstructionId{4}, -1}});
  EXPECT_FALSE(run(dependency).has_value());
  Program op;
  const auto id = op.compute(0, 10);
  op.compute(0, 10, {{id, 3}});
  EXPECT_FALSE(run(op).has_value());
}

TEST(Simulator, StepBeyondTheClockIsAnErrorNotAnOverflow) {
  Program program;
  for (int i = 0; i < 4; ++i) program.compute(0, 4'000'000'000'000'000'000);
  const auto result = run(program);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().front().message.find("days"), std::string::npos);
}

// --- Determinism
// ---------------------------------------------------------------------------------------------

TEST(Determinism, EventLogHashIsTheSameOverRunsAndThreads) {
  const Program program = overlapped(20, 3 * kUs, Bytes(1 << 20));
  const auto simulator = Simulator::create(program.program, hand_made::cluster(2));
  Profile profile = default_profile();
  const auto first = simulator->run(profile);
  std::vector<std::uint64_t> hashes(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      threads.emplace_back([&, i] { hashes[i] = simulator->run(profile)->event_hash; });
    }
  }
  for (const std::uint64_t hash : hashes) EXPECT_EQ(hash, first->event_hash);
}

TEST(Determinism, RecordingDoesNotChangeWhatHappens) {
  const Program program = overlapped(10, 3 * kUs, Bytes(1 << 20));
  Profile profile = default_profile();
  const auto bare = run(program, profile, {.memory = false});
  SimulationOptions everything;
  everything.timeline = everything.ops = everything.host_track = everything.graph = everything.all_ranks =
      true;
  const auto full = run(program, profile, everything);
  EXPECT_EQ(bare->step_time, full->step_time);
  EXPECT_EQ(bare->event_hash, full->event_hash);
}

// Golden: changes only when the engine's order of events does. Holds in debug and release builds.
TEST(Determinism, GoldenHashOfAHandMadeProgram) {
  Program program(pipeline(2));
  const auto work = program.compute(0, 1000);
  Draft send = transfer(InstructionKind::send, 1, 0);
  send.after = {{work, -1}};
  program.add(0, send);
  const auto received = program.add(1, transfer(InstructionKind::recv, 0, 0));
  program.compute(1, 500, {{received, -1}});
  const auto result = run(program);
  EXPECT_EQ(result->step_time.ps(), 1500);
  EXPECT_EQ(result->event_hash, 8756736148251775717u);
}

}  // namespace
}  // namespace foretrain
