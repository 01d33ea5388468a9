// The issuing host thread of a rank class.
#include <algorithm>

#include "sim/engine/executor.h"

namespace foretrain {

std::int64_t Executor::own_host_cost(std::int32_t c, std::int32_t i) const {
  const PreparedInstruction& plan = prepared(c, i);
  std::int64_t cost = plan.copies ? costs_.host_per_op_ps : 0;
  if (plan.encounter.meeting != Meeting::none) cost += costs_.host_per_collective_ps;
  return cost;
}

std::int64_t Executor::host_cost(std::int32_t c, std::int32_t i) const {
  const CostedList* list = list_of(c, i);
  return own_host_cost(c, i) + (list == nullptr ? 0 : list->host_ps());
}

std::int64_t Executor::marker_host_cost(std::int32_t c, const Marker& marker) const {
  std::int64_t cost = 0;
  for (const std::int32_t i : marker.hooked) cost += host_cost(c, i);
  return cost;
}

void Executor::issue(std::int32_t c, std::int32_t i, std::int32_t node) {
  InstructionState& mine = state(c, i);
  mine.phase = Phase::issued;
  mine.issued_ps = now_;
  mine.host_node = node;
  recorder_.host_span(c, i, now_, now_ + host_cost(c, i));
}

// Issues the ops of instruction i from host.op on, with what is hooked to them, up to a host sync or the end.
// `time` is advanced to when that is done; whether a sync has been reached.
bool Executor::host_issues_ops(std::int32_t c, std::int32_t i, std::int64_t& time) {
  const CostedList* list = list_of(c, i);
  if (list == nullptr || list->runs.empty()) return false;
  Host& host = actor(c).host;
  std::int32_t limit = static_cast<std::int32_t>(list->runs.size());
  bool syncs = false;
  for (const CostedList::Section& section : list->sections) {
    if (section.stop == OpKind::host_sync && section.end > host.op) {
      limit = section.end;
      syncs = true;
      break;
    }
  }
  const auto issued = [&](std::int32_t op_end) {
    time += list->host_before_ps[static_cast<std::size_t>(op_end)] -
            list->host_before_ps[static_cast<std::size_t>(host.op)];
    host.op = op_end;
  };
  for (const Marker& marker : prepared(c, i).markers) {
    if (marker.op_end <= host.op || marker.op_end > limit) continue;
    issued(marker.op_end);
    for (const std::int32_t hooked : marker.hooked) {
      state(c, hooked).host_node = host.node;
      queue_.push(Time::from_ps(time), EventPriority::finish, issue_event, c, hooked);
      time += host_cost(c, hooked);
    }
  }
  issued(limit);
  return syncs;
}

// The host is free to go on where it stands.
void Executor::host_go(std::int32_t c) {
  Host& host = actor(c).host;
  host.state = Host::State::free;
  const auto count = static_cast<std::int32_t>(actor(c).instructions.size());
  if (recorder_.graph() && recorder_.time_of(host.node) < now_) {
    const std::int32_t node = recorder_.node(now_, c, std::min(host.instruction, count - 1));
    recorder_.edge(host.node, node, now_ - recorder_.time_of(host.node), CauseKind::host);
    host.node = node;
  }
  while (host.instruction < count) {
    const std::int32_t i = host.instruction;
    if (host.op == 0) {
      if (prepared(c, i).hooked) {
        ++host.instruction;
        continue;
      }
      issue(c, i, host.node);
    }
    std::int64_t time = now_;
    if (host_issues_ops(c, i, time)) {
      host.state = Host::State::waits_for_sync;
      host.free_ps = time;
      return;
    }
    time += own_host_cost(c, i);
    ++host.instruction;
    host.op = 0;
    if (instruction(c, i).blocks_host) {
      host.state = Host::State::waits_for_instruction;
      host.waits_for = i;
      host.free_ps = time;
      return;
    }
    if (time > now_) {
      queue_.push(Time::from_ps(time), EventPriority::finish, host_event, c);
      return;
    }
  }
  host.state = Host::State::done;
}

// What the host waited for has happened; it goes on at `at`.
void Executor::host_released(std::int32_t c, std::int64_t at, std::int32_t cause_node) {
  Host& host = actor(c).host;
  host.state = Host::State::free;
  if (recorder_.graph()) {
    const std::int32_t node = recorder_.node(at, c, host.instruction);
    recorder_.edge(host.node, node, host.free_ps - recorder_.time_of(host.node), CauseKind::host);
    recorder_.edge(cause_node, node);
    host.node = node;
  }
  queue_.push(Time::from_ps(at), EventPriority::finish, host_event, c);
}

}  // namespace foretrain
