// Where the time of each rank class goes: every picosecond of the step is one of computing, communication,
// bubble and host.
#include "sim/engine/executor.h"

namespace foretrain {
namespace {

constexpr std::size_t kCompute = static_cast<std::size_t>(StreamKind::compute);
constexpr int kDeepest = 64;  // of a chain of causes

}  // namespace

// Counts the time since the last change of the class's state. The compute stream's own device time is counted
// by account_segment when a segment ends.
void Executor::touch(std::int32_t c) {
  Actor& a = actor(c);
  const Time passed = Time::from_ps(now_ - a.mode_since_ps);
  a.mode_since_ps = now_;
  if (passed == Time{}) return;
  switch (a.mode) {
    case Mode::device:
      if (a.communicating > 0) a.overlap_ps += passed.ps();
      break;
    case Mode::host:
      a.breakdown.host += passed;
      break;
    case Mode::communication:
      a.breakdown.exposed_communication += passed;
      break;
    case Mode::bubble:
      a.breakdown.bubble += passed;
      break;
  }
}

void Executor::account_segment(Actor& a, const Stream& st, std::int64_t idle_ps) {
  const std::int64_t work = st.segment.device_ps;
  const std::int64_t stretch = now_ - st.start_ps - idle_ps - work;
  a.breakdown.compute += Time::from_ps(work);
  a.breakdown.host += Time::from_ps(idle_ps);
  a.breakdown.exposed_communication += Time::from_ps(stretch);
  a.stretch_ps += stretch;
}

void Executor::classify(std::int32_t c) {
  Actor& a = actor(c);
  const Stream& compute = a.streams[kCompute];
  if (compute.on_device && compute.stage == Stage::ops) {
    a.mode = Mode::device;
    return;
  }
  const PreparedClass& plan = prepared_.classes[static_cast<std::size_t>(c)];
  if (compute.instruction >= 0) {
    a.mode = cause_of(a, c, compute.instruction, 0);
  } else if (compute.head < plan.order[kCompute].size()) {
    a.mode = cause_of(a, c, plan.order[kCompute][compute.head], 0);
  } else {
    // Nothing left to compute: the other streams finish, or other stages do.
    for (const Stream& st : a.streams) {
      if (st.communicating) {
        a.mode = Mode::communication;
        return;
      }
    }
    a.mode = Mode::bubble;
    for (std::size_t s = 0; s < kStreams; ++s) {
      const Stream& st = a.streams[s];
      if (st.head == plan.order[s].size()) continue;
      a.mode = cause_of(a, c, plan.order[s][st.head], 0);
      return;
    }
    if (a.host.state != Host::State::done) a.mode = host_cause(a, c, 0);
  }
}

// Why an unfinished instruction is not done.
Executor::Mode Executor::cause_of(const Actor& a, std::int32_t c, std::int32_t i, int depth) const {
  if (depth > kDeepest) return Mode::bubble;
  const InstructionState& mine = a.instructions[static_cast<std::size_t>(i)];
  const auto s = static_cast<std::size_t>(instruction(c, i).stream);
  const Stream& st = a.streams[s];
  switch (mine.phase) {
    case Phase::unissued:
      return host_cause(a, c, depth + 1);
    case Phase::running:
      if (st.communicating) return Mode::communication;
      if (st.meeting) return Mode::bubble;
      // Copies beside the compute stream serve communication; an arrival waits for the host.
      return st.on_device && st.stage != Stage::arrive ? Mode::communication : Mode::host;
    case Phase::issued: {
      if (st.instruction >= 0) return cause_of(a, c, st.instruction, depth + 1);
      const std::int32_t head = prepared_.classes[static_cast<std::size_t>(c)].order[s][st.head];
      if (head != i) return cause_of(a, c, head, depth + 1);
      const RankClass& rank_class = prepared_.program->classes[static_cast<std::size_t>(c)];
      for (const Dependency& d : rank_class.dependencies_of(instruction(c, i))) {
        const InstructionState& other = a.instructions[static_cast<std::size_t>(d.instruction.value)];
        if (other.phase == Phase::finished || (d.op >= 0 && other.passed_ops > d.op)) continue;
        return cause_of(a, c, d.instruction.value, depth + 1);
      }
      return Mode::host;
    }
    case Phase::finished:
      return Mode::host;
  }
  return Mode::host;
}

Executor::Mode Executor::host_cause(const Actor& a, std::int32_t c, int depth) const {
  switch (a.host.state) {
    case Host::State::waits_for_instruction:
      return cause_of(a, c, a.host.waits_for, depth + 1);
    case Host::State::waits_for_sync:
      return cause_of(a, c, a.host.instruction, depth + 1);
    case Host::State::free:
      return Mode::host;
    case Host::State::done:
      return Mode::bubble;
  }
  return Mode::host;
}

}  // namespace foretrain
