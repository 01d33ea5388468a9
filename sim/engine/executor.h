// One run of a prepared program: an actor per rank class with its issuing host thread, its streams and its
// device, coupled through collectives and transfers. Event driven; everything that happens at one instant is
// settled before time goes on. Not thread-safe; makes one run and is thrown away.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "sim/device/host_segment.h"
#include "sim/engine/activities.h"
#include "sim/engine/prepared.h"
#include "sim/engine/recorder.h"
#include "sim/engine/run_costs.h"
#include "sim/engine/simulate.h"
#include "sim/kernel/event_queue.h"

namespace foretrain {

class Executor {
 public:
  Executor(const Prepared& prepared, const RunCosts& costs, Recorder& recorder);

  // Errors: deadlock; a transfer without bandwidth. Fills times, breakdown, hash.
  Errors run(SimulationResult& result);

 private:
  enum EventKind : std::int32_t { host_event, issue_event, section_event, flow_event, end_event };

  // Where an instruction stands.
  enum class Phase : std::uint8_t { unissued, issued, running, finished };
  struct InstructionState {
    Phase phase = Phase::unissued;
    std::int32_t passed_ops = 0;
    std::int64_t issued_ps = 0;
    std::int32_t host_node = -1;  // graph: when the host issued it
    std::int32_t end_node = -1;   // graph: its end, or its last marker so far
  };

  // What the running instruction of a stream is doing.
  enum class Stage : std::uint8_t { ops, copy, arrive, meet, done };
  struct Stream {
    std::size_t head = 0;           // next instruction in the stream's order
    std::int32_t instruction = -1;  // running; -1: idle
    Stage stage = Stage::ops;
    std::int32_t op = 0;                                 // next op
    std::size_t section = 0, marker = 0, encounter = 0;  // next of each
    std::int64_t entry_ps = 0;  // host time when ops from entry_op on began to be issued
    std::int32_t entry_op = 0;
    std::int64_t began_ps = 0;
    bool on_device = false;      // a segment is running
    bool meeting = false;        // has arrived at a collective or transfer that is not over
    bool communicating = false;  // that is under way
    bool resume = false;         // it is over; to be continued
    std::int64_t start_ps = 0, end_ps = 0;
    std::int32_t op_end = 0;
    Segment segment;
    std::span<const KernelRun> runs;  // of the segment; empty: host time only
    std::int64_t host_entry_ps = 0;   // of the segment
    std::optional<SegmentWalk> walk;  // when the rate changes on the way, or ops are recorded
    std::vector<SegmentWalk::OpTimes> op_times;
    double rate = 1;
    std::int32_t generation = 0;
    KernelRun copy;  // of Stage::copy
    std::int64_t met_ps = 0;
    std::int32_t node = -1, entry_node = -1,
                 last_node = -1;  // graph: here; host's entry; the stream's last end
  };

  struct Host {
    enum class State : std::uint8_t { free, waits_for_instruction, waits_for_sync, done };
    State state = State::free;
    std::int32_t instruction = 0;  // to be issued next, or being issued
    std::int32_t op = 0;
    std::int64_t free_ps = 0;  // not before, when waiting
    std::int32_t waits_for = -1;
    std::int32_t node = -1;  // graph
  };

  // Why a rank's compute stream is not computing.
  enum class Mode : std::uint8_t { device, host, communication, bubble };

  struct Actor {
    Host host;
    std::vector<InstructionState> instructions;
    std::array<Stream, kStreams> streams;
    std::vector<std::int32_t> joint_turn;  // by joint kind: collectives entered so far
    std::int32_t communicating = 0;        // activities under way that the class takes part in
    std::int32_t unfinished = 0;
    Mode mode = Mode::host;
    std::int64_t mode_since_ps = 0;
    std::int64_t overlap_ps = 0, stretch_ps = 0;
    RankBreakdown breakdown;
    bool dirty = false;
  };

  using Member = std::pair<std::int32_t, std::int32_t>;  // actor, stream
  struct Meet {                                          // of a joint collective or a transfer
    std::vector<Member> arrived;
    std::int32_t exchange = -1;
  };
  struct Running {  // an activity
    std::vector<Member> members;
    std::int64_t start_ps = 0;
    std::int32_t start_node = -1;
  };

  // executor.cpp
  bool try_start(std::int32_t c, std::int32_t s);
  bool dependencies_met(std::int32_t c, std::int32_t i) const;
  void proceed(std::int32_t c, std::int32_t s);
  bool begin_segment(std::int32_t c, std::int32_t s, std::span<const KernelRun> runs, const Segment& segment,
                     std::int64_t host_entry);
  void end_segment(std::int32_t c, std::int32_t s);
  bool after_segment(std::int32_t c, std::int32_t s);
  bool begin_ops(std::int32_t c, std::int32_t s, const CostedList& list);
  bool pass_ops(std::int32_t c, std::int32_t s);
  void pass_to(std::int32_t c, std::int32_t s);
  bool meet(std::int32_t c, std::int32_t s, const Encounter& encounter);
  void resume(std::int32_t c, std::int32_t s);
  void finish_instruction(std::int32_t c, std::int32_t s);
  void start_activity(std::int32_t exchange, std::vector<Member> members);
  void end_activity(std::int32_t activity);
  void rate_changed(std::int32_t c);
  void pump();
  void mark(std::int32_t c);
  bool overtaken(const Event& event) const;
  void dispatch(const Event& event);
  const CostedList* list_of(std::int32_t c, std::int32_t i) const;

  // executor_host.cpp
  void host_go(std::int32_t c);
  void issue(std::int32_t c, std::int32_t i, std::int32_t node);
  std::int64_t host_cost(std::int32_t c, std::int32_t i) const;      // of all of it
  std::int64_t own_host_cost(std::int32_t c, std::int32_t i) const;  // beyond its op list
  std::int64_t marker_host_cost(std::int32_t c, const Marker& marker) const;
  bool host_issues_ops(std::int32_t c, std::int32_t i, std::int64_t& time);
  void host_released(std::int32_t c, std::int64_t at, std::int32_t cause_node);

  // executor_accounting.cpp
  void touch(std::int32_t c);
  void classify(std::int32_t c);
  Mode cause_of(const Actor& actor, std::int32_t c, std::int32_t i, int depth) const;
  Mode host_cause(const Actor& actor, std::int32_t c, int depth) const;
  void account_segment(Actor& actor, const Stream& stream, std::int64_t idle_ps);

  // executor_deadlock.cpp
  Error deadlock() const;
  std::string waiting_line(std::int32_t c) const;

  const Instruction& instruction(std::int32_t c, std::int32_t i) const {
    return prepared_.program->classes[static_cast<std::size_t>(c)].instructions[static_cast<std::size_t>(i)];
  }
  const PreparedInstruction& prepared(std::int32_t c, std::int32_t i) const {
    return prepared_.classes[static_cast<std::size_t>(c)].instructions[static_cast<std::size_t>(i)];
  }
  Actor& actor(std::int32_t c) { return actors_[static_cast<std::size_t>(c)]; }
  const Actor& actor(std::int32_t c) const { return actors_[static_cast<std::size_t>(c)]; }
  InstructionState& state(std::int32_t c, std::int32_t i) {
    return actor(c).instructions[static_cast<std::size_t>(i)];
  }
  const InstructionState& state(std::int32_t c, std::int32_t i) const {
    return actor(c).instructions[static_cast<std::size_t>(i)];
  }
  Stream& stream(std::int32_t c, std::int32_t s) { return actor(c).streams[static_cast<std::size_t>(s)]; }
  double rate_now(std::int32_t c) const {
    return actor(c).communicating > 0 ? costs_.rate_beside_communication : 1.0;
  }

  const Prepared& prepared_;
  const RunCosts& costs_;
  Recorder& recorder_;
  EventQueue queue_;
  Activities activities_;
  std::vector<Actor> actors_;
  std::vector<Running> running_;           // by activity handle
  std::vector<std::vector<Meet>> joints_;  // by joint kind and turn
  std::vector<Meet> transfers_;            // by slot
  std::vector<Time> moved_;                // by pattern: sum of lower bounds of what it moved
  std::int64_t now_ = 0;
  std::vector<std::int32_t> touched_;  // scratch of pump()
  bool dirty_ = false;
};

}  // namespace foretrain
