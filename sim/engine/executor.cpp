#include "sim/engine/executor.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace foretrain {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t kCompute = static_cast<std::int32_t>(StreamKind::compute);

}  // namespace

Executor::Executor(const Prepared& prepared, const RunCosts& costs, Recorder& recorder)
    : prepared_(prepared),
      costs_(costs),
      recorder_(recorder),
      activities_(costs.capacities, queue_, flow_event, end_event) {
  actors_.resize(prepared.classes.size());
  for (std::size_t c = 0; c < actors_.size(); ++c) {
    const std::size_t count = prepared.classes[c].instructions.size();
    actors_[c].instructions.resize(count);
    actors_[c].unfinished = static_cast<std::int32_t>(count);
    actors_[c].joint_turn.resize(static_cast<std::size_t>(prepared.joint_kinds), 0);
    actors_[c].breakdown.stage = prepared.program->classes[c].stage;
  }
  joints_.resize(static_cast<std::size_t>(prepared.joint_kinds));
  transfers_.resize(static_cast<std::size_t>(prepared.transfer_slots));
}

Errors Executor::run(SimulationResult& result) {
  const std::int32_t root = recorder_.node(0, -1, -1);
  std::uint64_t instructions = 0;
  for (std::size_t c = 0; c < actors_.size(); ++c) {
    actors_[c].host.node = root;
    for (Stream& s : actors_[c].streams) s.last_node = root;
    queue_.push(Time{}, EventPriority::finish, host_event, static_cast<std::int32_t>(c));
    instructions += actors_[c].instructions.size();
  }
  const std::uint64_t most_events = 1'000'000 + 10'000 * instructions;
  for (;;) {
    if (queue_.empty() || queue_.top().time.ps() > now_) {
      if (activities_.unsettled()) {
        activities_.settle(Time::from_ps(now_));
        continue;
      }
      if (queue_.empty()) break;
    }
    if (overtaken(queue_.top())) {
      queue_.discard();
      continue;
    }
    const Event event = queue_.pop();
    now_ = event.time.ps();
    dispatch(event);
    pump();
    if (queue_.popped() > most_events) {
      return {Error{ErrorCode::internal,
                    {},
                    fmt::format("the simulation made {} events without an end", most_events),
                    {}}};
    }
  }
  for (const Actor& a : actors_) {
    if (a.unfinished > 0 || a.host.state != Host::State::done) return {deadlock()};
  }
  result.step_time = Time::from_ps(now_);
  const std::int32_t last = recorder_.node(now_, -1, -1);
  for (std::size_t c = 0; c < actors_.size(); ++c) {
    touch(static_cast<std::int32_t>(c));
    Actor& a = actors_[c];
    a.breakdown.overlapped_communication =
        Time::from_ps(std::max<std::int64_t>(0, a.overlap_ps - a.stretch_ps));
    result.breakdown.push_back(a.breakdown);
    recorder_.edge(a.host.node, last);
    for (const Stream& s : a.streams) recorder_.edge(s.last_node, last);
  }
  for (const Time moved : moved_)
    result.collective_lower_bound = std::max(result.collective_lower_bound, moved);
  result.events = queue_.popped();
  result.event_hash = queue_.hash();
  return {};
}

bool Executor::overtaken(const Event& event) const {
  switch (event.kind) {
    case section_event: {
      const Stream& s = actor(event.a).streams[static_cast<std::size_t>(event.b)];
      return !s.on_device || s.generation != event.generation;
    }
    case flow_event:
    case end_event:
      return activities_.overtaken(event);
    default:
      return false;
  }
}

void Executor::dispatch(const Event& event) {
  switch (event.kind) {
    case host_event:
      mark(event.a);
      host_go(event.a);
      break;
    case issue_event: {
      mark(event.a);
      const std::int32_t from = state(event.a, event.b).host_node;
      const std::int32_t node = recorder_.node(now_, event.a, event.b);
      if (node >= 0) recorder_.edge(from, node, now_ - recorder_.time_of(from), CauseKind::host);
      issue(event.a, event.b, node);
      break;
    }
    case section_event:
      mark(event.a);
      end_segment(event.a, event.b);
      if (after_segment(event.a, event.b)) proceed(event.a, event.b);
      break;
    case flow_event:
      activities_.begin_flow(event.a, event.time);
      break;
    case end_event:
      end_activity(event.a);
      break;
    default:
      break;
  }
}

void Executor::mark(std::int32_t c) {
  touch(c);
  actor(c).dirty = true;
  dirty_ = true;
}

// Lets everything begin that can begin now, until nothing more does.
void Executor::pump() {
  if (!dirty_) return;
  std::vector<std::int32_t>& touched = touched_;
  touched.clear();
  while (dirty_) {
    dirty_ = false;
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(actors_.size()); ++c) {
      while (actor(c).dirty) {
        actor(c).dirty = false;
        touched.push_back(c);
        for (std::int32_t s = 0; s < kStreams; ++s) {
          if (stream(c, s).resume) resume(c, s);
          while (try_start(c, s)) {
          }
        }
      }
    }
  }
  for (const std::int32_t c : touched) classify(c);
}

bool Executor::dependencies_met(std::int32_t c, std::int32_t i) const {
  const RankClass& rank_class = prepared_.program->classes[static_cast<std::size_t>(c)];
  for (const Dependency& d : rank_class.dependencies_of(instruction(c, i))) {
    const InstructionState& other = state(c, d.instruction.value);
    if (other.phase == Phase::finished) continue;
    if (d.op < 0 || other.passed_ops <= d.op) return false;
  }
  return true;
}

// Starts the head of an idle stream; whether it did (and may have finished it at once).
bool Executor::try_start(std::int32_t c, std::int32_t s) {
  Stream& st = stream(c, s);
  const std::vector<std::int32_t>& order =
      prepared_.classes[static_cast<std::size_t>(c)].order[static_cast<std::size_t>(s)];
  if (st.instruction >= 0 || st.head == order.size()) return false;
  const std::int32_t i = order[st.head];
  InstructionState& mine = state(c, i);
  if (mine.phase != Phase::issued || !dependencies_met(c, i)) return false;
  mine.phase = Phase::running;
  st.instruction = i;
  st.stage = Stage::ops;
  st.op = 0;
  st.section = st.marker = st.encounter = 0;
  st.entry_ps = mine.issued_ps;
  st.entry_op = 0;
  st.began_ps = now_;
  if (recorder_.graph()) {
    st.node = recorder_.node(now_, c, i);
    st.entry_node = mine.host_node;
    recorder_.edge(st.entry_node, st.node);
    recorder_.edge(st.last_node, st.node);
    for (const Dependency& d :
         prepared_.program->classes[static_cast<std::size_t>(c)].dependencies_of(instruction(c, i))) {
      recorder_.edge(state(c, d.instruction.value).end_node, st.node);
    }
  }
  recorder_.memory(c, {MemoryEvent::Kind::begin, i, 0, 0, now_});
  proceed(c, s);
  return true;
}

const CostedList* Executor::list_of(std::int32_t c, std::int32_t i) const {
  const std::int32_t list = instruction(c, i).op_list;
  return list < 0 ? nullptr : &costs_.lists[static_cast<std::size_t>(list)];
}

// Goes on with the running instruction of a stream until something takes time or has to be waited for.
void Executor::proceed(std::int32_t c, std::int32_t s) {
  Stream& st = stream(c, s);
  for (;;) {
    const std::int32_t i = st.instruction;
    const PreparedInstruction& plan = prepared(c, i);
    const CostedList* list = list_of(c, i);
    bool ended = true;
    switch (st.stage) {
      case Stage::ops:
        if (list == nullptr || st.op == static_cast<std::int32_t>(list->runs.size())) {
          st.stage = Stage::copy;
          continue;
        }
        ended = begin_ops(c, s, *list);
        break;
      case Stage::copy: {
        if (!plan.copies) {
          st.stage = Stage::arrive;
          continue;
        }
        const Bytes payload = instruction(c, i).payload;
        Time time;
        if (payload.count() > 0 && costs_.copy_bandwidth.bytes_per_s() > 0) {
          time = transfer_time(payload, costs_.copy_bandwidth) + costs_.copy_latency;
        }
        st.copy = KernelRun{time.ps(), costs_.host_per_op_ps, 1};
        const std::int64_t entry =
            st.entry_ps +
            (list ? list->host_ps() - list->host_before_ps[static_cast<std::size_t>(st.entry_op)] : 0);
        ended = begin_segment(c, s, std::span(&st.copy, 1), segment_of(st.copy), entry);
        break;
      }
      case Stage::arrive: {
        if (plan.encounter.meeting == Meeting::none) {
          st.stage = Stage::done;
          continue;
        }
        const std::int64_t entry =
            st.entry_ps +
            (list ? list->host_ps() - list->host_before_ps[static_cast<std::size_t>(st.entry_op)] : 0);
        const std::int64_t a = costs_.host_per_collective_ps;
        ended = begin_segment(c, s, {}, Segment{a, 0, a}, entry);
        break;
      }
      case Stage::meet:
        return;
      case Stage::done:
        finish_instruction(c, s);
        return;
    }
    if (!ended) return;
    end_segment(c, s);
    if (!after_segment(c, s)) return;
  }
}

bool Executor::begin_ops(std::int32_t c, std::int32_t s, const CostedList& list) {
  Stream& st = stream(c, s);
  const CostedList::Section& section = list.sections[st.section];
  const std::vector<Marker>& markers = prepared(c, st.instruction).markers;
  st.op_end = section.end;
  if (st.marker < markers.size()) st.op_end = std::min(st.op_end, markers[st.marker].op_end);
  const bool whole = st.op == section.begin && st.op_end == section.end;
  const Segment segment = whole ? section.segment : list.segment(st.op, st.op_end);
  const std::int64_t entry = st.entry_ps + list.host_before_ps[static_cast<std::size_t>(st.op)] -
                             list.host_before_ps[static_cast<std::size_t>(st.entry_op)];
  recorder_.memory(c, {MemoryEvent::Kind::ops, st.instruction, st.op, st.op_end, now_});
  const auto runs = std::span(list.runs).subspan(static_cast<std::size_t>(st.op),
                                                 static_cast<std::size_t>(st.op_end - st.op));
  return begin_segment(c, s, runs, segment, entry);
}

// Whether the segment ended at once.
bool Executor::begin_segment(std::int32_t c, std::int32_t s, std::span<const KernelRun> runs,
                             const Segment& segment, std::int64_t host_entry) {
  Stream& st = stream(c, s);
  st.on_device = true;
  st.start_ps = now_;
  st.segment = segment;
  st.runs = runs;
  st.host_entry_ps = host_entry;
  st.rate = rate_now(c);
  st.walk.reset();
  st.op_times.clear();
  const bool record = recorder_.op_spans() && st.stage == Stage::ops;
  if (!runs.empty() && (st.rate < 1 || record)) {
    st.walk.emplace(runs, now_, host_entry, record ? &st.op_times : nullptr);
    st.end_ps = st.walk->end_at(st.rate);
  } else {
    st.end_ps = segment.device_out(now_, host_entry);
  }
  ++st.generation;
  if (st.end_ps <= now_) return true;
  if (st.end_ps != kNever) {
    queue_.push(Time::from_ps(st.end_ps), EventPriority::arrive, section_event, c, s, st.generation);
  }
  return false;
}

void Executor::end_segment(std::int32_t c, std::int32_t s) {
  Stream& st = stream(c, s);
  st.on_device = false;
  std::int64_t idle = now_ - st.start_ps - st.segment.device_ps;
  if (st.walk) {
    st.walk->advance(now_, st.rate);
    idle = st.walk->idle_ps();
  }
  if (s == kCompute && st.stage == Stage::ops) account_segment(actor(c), st, idle);
  if (!st.op_times.empty()) recorder_.op_spans(c, st.instruction, st.op, st.op_times);
  if (!recorder_.graph()) return;
  const std::int64_t busy = now_ - st.start_ps - idle;
  // A segment that waited for the host ends by what the host took and the work that came after it: the path
  // from the host's entry holds both, each under its own name.
  std::int32_t issued = st.entry_node;
  if (idle > 0) {
    const std::int64_t entry = recorder_.time_of(st.entry_node);
    issued = recorder_.node(now_ - busy, c, st.instruction);
    recorder_.edge(st.entry_node, issued, now_ - busy - entry, CauseKind::host);
  }
  const std::int32_t node = recorder_.node(now_, c, st.instruction);
  recorder_.edge(st.node, node, busy, CauseKind::compute);
  recorder_.edge(issued, node, idle > 0 ? busy : 0, idle > 0 ? CauseKind::compute : CauseKind::host);
  st.node = node;
}

// What follows the segment that has just ended; whether the instruction goes on at once.
bool Executor::after_segment(std::int32_t c, std::int32_t s) {
  Stream& st = stream(c, s);
  switch (st.stage) {
    case Stage::ops:
      return pass_ops(c, s);
    case Stage::copy:
      st.stage = Stage::arrive;
      return true;
    case Stage::arrive:
      st.stage = Stage::meet;
      if (!meet(c, s, prepared(c, st.instruction).encounter)) return false;
      st.stage = Stage::done;
      return true;
    default:
      return true;
  }
}

bool Executor::pass_ops(std::int32_t c, std::int32_t s) {
  Stream& st = stream(c, s);
  const CostedList& list = *list_of(c, st.instruction);
  st.op = st.op_end;
  const CostedList::Section& section = list.sections[st.section];
  if (st.op == section.end && section.stop == OpKind::collective) {
    const std::int32_t id = instruction(c, st.instruction).op_list;
    const std::vector<Encounter>& inside =
        prepared_.classes[static_cast<std::size_t>(c)].inside.find(id)->second;
    state(c, st.instruction).passed_ops = st.op - 1;
    if (!meet(c, s, inside[st.encounter])) return false;
  }
  if (st.op == section.end && section.stop == OpKind::host_sync) {
    Host& host = actor(c).host;
    const std::int64_t at = std::max(now_, host.free_ps);
    st.entry_ps = at;
    st.entry_op = st.op;
    host_released(c, at, st.node);
    st.entry_node = host.node;
  }
  pass_to(c, s);
  return true;
}

// The op list is done up to st.op, collectives included.
void Executor::pass_to(std::int32_t c, std::int32_t s) {
  Stream& st = stream(c, s);
  const CostedList& list = *list_of(c, st.instruction);
  const CostedList::Section& section = list.sections[st.section];
  if (st.op == section.end) {
    if (section.stop == OpKind::collective) ++st.encounter;
    ++st.section;
  }
  InstructionState& mine = state(c, st.instruction);
  mine.passed_ops = st.op;
  const std::vector<Marker>& markers = prepared(c, st.instruction).markers;
  if (st.marker == markers.size() || markers[st.marker].op_end != st.op) return;
  const Marker& marker = markers[st.marker++];
  if (st.entry_op < st.op) {
    st.entry_ps += list.host_before_ps[static_cast<std::size_t>(st.op)] -
                   list.host_before_ps[static_cast<std::size_t>(st.entry_op)] + marker_host_cost(c, marker);
    st.entry_op = st.op;
  }
  mine.end_node = st.node;
  mark(c);
}

// Enters a collective or transfer; whether there is nothing to wait for.
bool Executor::meet(std::int32_t c, std::int32_t s, const Encounter& encounter) {
  if (encounter.meeting == Meeting::none) return true;
  if (encounter.meeting == Meeting::local && encounter.exchange < 0) return true;
  Stream& st = stream(c, s);
  st.meeting = true;
  st.met_ps = now_;
  mark(c);
  if (encounter.meeting == Meeting::local) {
    start_activity(encounter.exchange, {Member{c, s}});
    return false;
  }
  Meet* place = nullptr;
  std::size_t expected = 2;
  if (encounter.meeting == Meeting::joint) {
    const auto turn =
        static_cast<std::size_t>(actor(c).joint_turn[static_cast<std::size_t>(encounter.slot)]++);
    std::vector<Meet>& turns = joints_[static_cast<std::size_t>(encounter.slot)];
    if (turns.size() <= turn) turns.resize(turn + 1);
    place = &turns[turn];
    expected = actors_.size();
  } else {
    place = &transfers_[static_cast<std::size_t>(encounter.slot)];
  }
  place->arrived.emplace_back(c, s);
  if (place->exchange < 0) place->exchange = encounter.exchange;
  if (place->arrived.size() == expected) start_activity(place->exchange, place->arrived);
  return false;
}

void Executor::start_activity(std::int32_t exchange, std::vector<Member> members) {
  for (const auto& [c, s] : members) mark(c);
  if (exchange < 0) {
    const std::int32_t node = recorder_.node(
        now_, members.front().first, stream(members.front().first, members.front().second).instruction);
    for (const auto& [c, s] : members) recorder_.edge(stream(c, s).node, node);
    for (const auto& [c, s] : members) {
      stream(c, s).node = node;
      stream(c, s).resume = true;
    }
    return;
  }
  const std::int32_t handle =
      activities_.start(costs_.exchanges[static_cast<std::size_t>(exchange)], Time::from_ps(now_));
  if (static_cast<std::size_t>(handle) >= running_.size())
    running_.resize(static_cast<std::size_t>(handle) + 1);
  Running& running = running_[static_cast<std::size_t>(handle)];
  running.start_ps = now_;
  running.start_node = recorder_.node(now_, members.front().first,
                                      stream(members.front().first, members.front().second).instruction);
  const auto pattern =
      static_cast<std::size_t>(prepared_.exchanges[static_cast<std::size_t>(exchange)].pattern);
  if (pattern >= moved_.size()) moved_.resize(pattern + 1);
  moved_[pattern] += costs_.lower_bounds[static_cast<std::size_t>(exchange)];
  for (const auto& [c, s] : members) {
    recorder_.edge(stream(c, s).node, running.start_node);
    stream(c, s).communicating = true;
    if (actor(c).communicating++ == 0) rate_changed(c);
  }
  running.members = std::move(members);
}

void Executor::end_activity(std::int32_t activity) {
  activities_.finish(activity);
  Running& running = running_[static_cast<std::size_t>(activity)];
  const Member first = running.members.front();
  const std::int32_t node = recorder_.node(now_, first.first, stream(first.first, first.second).instruction);
  recorder_.edge(running.start_node, node, now_ - running.start_ps, CauseKind::communication);
  for (const auto& [c, s] : running.members) {
    mark(c);
    Stream& st = stream(c, s);
    st.communicating = false;
    st.resume = true;
    st.node = node;
    if (st.stage == Stage::ops) {
      if (recorder_.op_spans()) recorder_.op_span(c, st.instruction, st.op - 1, running.start_ps, now_);
    } else if (instruction(c, st.instruction).op_list < 0) {
      st.began_ps = running.start_ps;
    }
    if (--actor(c).communicating == 0) rate_changed(c);
  }
}

void Executor::resume(std::int32_t c, std::int32_t s) {
  Stream& st = stream(c, s);
  st.resume = false;
  st.meeting = false;
  if (st.stage == Stage::ops) {
    pass_to(c, s);
  } else {
    st.stage = Stage::done;
  }
  proceed(c, s);
}

void Executor::rate_changed(std::int32_t c) {
  if (costs_.rate_beside_communication >= 1) return;
  for (std::int32_t s = 0; s < kStreams; ++s) {
    Stream& st = stream(c, s);
    if (!st.on_device || st.runs.empty()) continue;
    if (!st.walk) st.walk.emplace(st.runs, st.start_ps, st.host_entry_ps, nullptr);
    st.walk->advance(now_, st.rate);
    st.rate = rate_now(c);
    st.end_ps = st.walk->end_at(st.rate);
    ++st.generation;
    if (st.end_ps == kNever) continue;
    queue_.push(Time::from_ps(std::max(st.end_ps, now_)), EventPriority::arrive, section_event, c, s,
                st.generation);
  }
}

void Executor::finish_instruction(std::int32_t c, std::int32_t s) {
  Stream& st = stream(c, s);
  const std::int32_t i = st.instruction;
  InstructionState& mine = state(c, i);
  mine.phase = Phase::finished;
  mine.end_node = st.node;
  st.last_node = st.node;
  st.instruction = -1;
  ++st.head;
  --actor(c).unfinished;
  recorder_.instruction_span(c, i, st.began_ps, now_);
  recorder_.memory(c, {MemoryEvent::Kind::end, i, 0, 0, now_});
  mark(c);
  Host& host = actor(c).host;
  if (host.state == Host::State::waits_for_instruction && host.waits_for == i) {
    host_released(c, std::max(now_, host.free_ps), st.node);
  }
}

}  // namespace foretrain
