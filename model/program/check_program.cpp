// Validity of a step program: structure first (ranges, buffers, matched transfers, collective order), then a
// run in which everything takes no time, which finds every way in which ranks could wait for each other.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/program/dry_run.h"
#include "model/program/step_program.h"

namespace foretrain {
namespace {

constexpr std::size_t kMaxErrors = 50;

bool is_collective(const Instruction& i) { return is_group_collective(i.kind); }

class ProgramChecker {
 public:
  explicit ProgramChecker(const StepProgram& program) : program_(program) {}

  Errors run() {
    if (program_.classes.size() != static_cast<std::size_t>(program_.mesh.at(MeshDim::pp))) {
      error(fmt::format("the program has {} rank classes; expected one per pipeline stage, {}",
                        program_.classes.size(), program_.mesh.at(MeshDim::pp)));
      return std::move(errors_);
    }
    for (std::size_t l = 0; l < program_.op_lists.size(); ++l) op_list(l);
    for (std::size_t c = 0; c < program_.classes.size(); ++c) {
      for (std::size_t i = 0; i < program_.classes[c].instructions.size(); ++i) instruction(c, i);
    }
    if (!errors_.empty()) return std::move(errors_);  // the rest follows these indices
    for (std::size_t c = 0; c < program_.classes.size(); ++c) buffers(c);
    transfers();
    collectives();
    if (errors_.empty()) {
      for (std::string& waiting : find_deadlock(program_)) error(std::move(waiting));
    }
    return std::move(errors_);
  }

 private:
  void error(std::string message) {
    if (errors_.size() < kMaxErrors)
      errors_.push_back(Error{ErrorCode::internal, {}, std::move(message), {}});
  }
  const Instruction& at(std::size_t c, std::size_t i) const { return program_.classes[c].instructions[i]; }
  std::string name(std::size_t c, std::size_t i) const { return instruction_name(program_, c, i); }

  void op_list(std::size_t l) {
    const OpList& list = program_.op_lists[l];
    if (list.tensor_table >= static_cast<std::int32_t>(program_.tensor_tables.size())) {
      error(fmt::format("op list {} names tensor table {} of {}", l, list.tensor_table,
                        program_.tensor_tables.size()));
      return;
    }
    const std::size_t tensors =
        list.tensor_table < 0 ? 0
                              : program_.tensor_tables[static_cast<std::size_t>(list.tensor_table)].size();
    for (const Op& op : list.ops) {
      for (const std::vector<std::int32_t>* indices : {&op.allocates, &op.frees}) {
        for (const std::int32_t t : *indices) {
          if (t < 0 || static_cast<std::size_t>(t) >= tensors) {
            error(fmt::format("op \"{}\" of op list {} names tensor {} of {}", op.name, l, t, tensors));
          }
        }
      }
    }
  }

  template <typename T>
  bool range(std::size_t c, std::size_t i, const char* what, std::int32_t begin, std::int32_t end,
             const std::vector<T>& all) {
    if (begin >= 0 && begin <= end && static_cast<std::size_t>(end) <= all.size()) return true;
    error(fmt::format("{}: {} [{}, {}) are outside the {} there are", name(c, i), what, begin, end,
                      all.size()));
    return false;
  }

  void instruction(std::size_t c, std::size_t i) {
    const RankClass& rank_class = program_.classes[c];
    const Instruction& item = at(c, i);
    if (static_cast<int>(item.stream) >= kStreams) error(fmt::format("{}: no such stream", name(c, i)));
    if (item.op_list >= static_cast<std::int32_t>(program_.op_lists.size())) {
      error(fmt::format("{}: op list {} of {}", name(c, i), item.op_list, program_.op_lists.size()));
    }
    if (item.payload < Bytes(0)) error(fmt::format("{}: negative payload", name(c, i)));
    if (range(c, i, "dependencies", item.dependencies_begin, item.dependencies_end,
              rank_class.dependencies)) {
      for (const Dependency& d : rank_class.dependencies_of(item)) dependency(c, i, d);
    }
    const auto buffers_in_range = [&](std::span<const std::int32_t> list) {
      for (const std::int32_t b : list) {
        if (b < 0 || static_cast<std::size_t>(b) >= rank_class.buffers.size()) {
          error(fmt::format("{}: buffer {} of {}", name(c, i), b, rank_class.buffers.size()));
        }
      }
    };
    if (range(c, i, "allocated buffers", item.allocates_begin, item.allocates_end, rank_class.allocates)) {
      buffers_in_range(rank_class.allocates_of(item));
    }
    if (range(c, i, "freed buffers", item.frees_begin, item.frees_end, rank_class.frees)) {
      buffers_in_range(rank_class.frees_of(item));
    }
    range(c, i, "freed tensors", item.tensor_frees_begin, item.tensor_frees_end, rank_class.tensor_frees);
    if (is_collective(item) && program_.mesh.group_size(item.group) < 2) {
      error(fmt::format("{}: its group ({}) has one member", name(c, i), name_of(item.group)));
    }
    if (item.kind == InstructionKind::send || item.kind == InstructionKind::recv) {
      if (item.peer_stage < 0 || item.peer_stage >= program_.mesh.at(MeshDim::pp)) {
        error(fmt::format("{}: there is no stage {}", name(c, i), item.peer_stage));
      } else if (item.peer_stage == static_cast<std::int32_t>(c)) {
        error(fmt::format("{}: its other end is its own stage", name(c, i)));
      }
    }
  }

  void dependency(std::size_t c, std::size_t i, const Dependency& d) {
    const std::vector<Instruction>& all = program_.classes[c].instructions;
    if (d.instruction.value < 0 || static_cast<std::size_t>(d.instruction.value) >= all.size()) {
      error(fmt::format("{}: depends on instruction {} of {}", name(c, i), d.instruction.value, all.size()));
      return;
    }
    if (d.op < 0) return;
    const std::int32_t list = all[static_cast<std::size_t>(d.instruction.value)].op_list;
    const std::size_t ops = list < 0 || static_cast<std::size_t>(list) >= program_.op_lists.size()
                                ? 0
                                : program_.op_lists[static_cast<std::size_t>(list)].ops.size();
    if (static_cast<std::size_t>(d.op) >= ops) {
      error(fmt::format("{}: depends on op {} of {}, which has {} ops", name(c, i), d.op,
                        name(c, static_cast<std::size_t>(d.instruction.value)), ops));
    }
  }

  void buffers(std::size_t c) {
    const RankClass& rank_class = program_.classes[c];
    enum class State { absent, alive, freed };
    std::vector<State> state;
    for (const Buffer& b : rank_class.buffers) state.push_back(b.persistent ? State::alive : State::absent);
    for (std::size_t i = 0; i < rank_class.instructions.size(); ++i) {
      for (const std::int32_t b : rank_class.allocates_of(at(c, i))) {
        State& s = state[static_cast<std::size_t>(b)];
        if (s != State::absent) {
          error(fmt::format("{}: allocates buffer \"{}\" a second time", name(c, i),
                            rank_class.buffers[static_cast<std::size_t>(b)].name));
        }
        s = State::alive;
      }
      for (const std::int32_t b : rank_class.frees_of(at(c, i))) {
        State& s = state[static_cast<std::size_t>(b)];
        const Buffer& buffer = rank_class.buffers[static_cast<std::size_t>(b)];
        if (s != State::alive || buffer.persistent) {
          error(fmt::format("{}: frees buffer \"{}\", which is {}", name(c, i), buffer.name,
                            buffer.persistent ? "persistent" : "not allocated"));
        }
        s = State::freed;
      }
    }
  }

  void transfers() {
    // (sender, receiver, tag) -> the two ends.
    struct Ends {
      std::int32_t send = -1, recv = -1;
    };
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, Ends> all;
    for (std::size_t c = 0; c < program_.classes.size(); ++c) {
      for (std::size_t i = 0; i < program_.classes[c].instructions.size(); ++i) {
        const Instruction& item = at(c, i);
        const bool sends = item.kind == InstructionKind::send;
        if (!sends && item.kind != InstructionKind::recv) continue;
        const auto here = static_cast<std::int32_t>(c);
        Ends& ends = all[sends ? std::tuple(here, item.peer_stage, item.tag)
                               : std::tuple(item.peer_stage, here, item.tag)];
        std::int32_t& end = sends ? ends.send : ends.recv;
        if (end >= 0) {
          error(fmt::format("{}: tag {} is used a second time between these stages", name(c, i), item.tag));
        }
        end = static_cast<std::int32_t>(i);
      }
    }
    for (const auto& [key, ends] : all) {
      const auto from = static_cast<std::size_t>(std::get<0>(key));
      const auto to = static_cast<std::size_t>(std::get<1>(key));
      if (ends.send < 0 || ends.recv < 0) {
        const bool sent = ends.send >= 0;
        error(fmt::format("{}: stage {} never {} it (tag {})",
                          sent ? name(from, static_cast<std::size_t>(ends.send))
                               : name(to, static_cast<std::size_t>(ends.recv)),
                          sent ? to : from, sent ? "receives" : "sends", std::get<2>(key)));
        continue;
      }
      const auto s = static_cast<std::size_t>(ends.send), r = static_cast<std::size_t>(ends.recv);
      const Instruction& send = at(from, s);
      const Instruction& recv = at(to, r);
      if (send.payload != recv.payload || send.dtype != recv.dtype) {
        error(fmt::format("{} of {} B {} does not fit {} of {} B {}", name(from, s), send.payload.count(),
                          name_of(send.dtype), name(to, r), recv.payload.count(), name_of(recv.dtype)));
      }
    }
  }

  // Groups inside one stage have members of one class only, which issue the same; groups over pp have members
  // of every class, which must issue the same sequence.
  void collectives() {
    std::map<MeshDims, std::vector<std::vector<std::size_t>>> sequences;
    for (std::size_t c = 0; c < program_.classes.size(); ++c) {
      for (std::size_t i = 0; i < program_.classes[c].instructions.size(); ++i) {
        const Instruction& item = at(c, i);
        if (!is_collective(item) || !item.group.has(MeshDim::pp)) continue;
        auto& by_class = sequences[item.group];
        by_class.resize(program_.classes.size());
        by_class[c].push_back(i);
      }
    }
    for (const auto& [group, by_class] : sequences) {
      for (std::size_t c = 1; c < by_class.size(); ++c) same_sequence(group, by_class[0], c, by_class[c]);
    }
  }

  void same_sequence(MeshDims group, const std::vector<std::size_t>& first, std::size_t c,
                     const std::vector<std::size_t>& other) {
    for (std::size_t k = 0; k < std::min(first.size(), other.size()); ++k) {
      const Instruction& a = at(0, first[k]);
      const Instruction& b = at(c, other[k]);
      if (a.kind == b.kind && a.collective == b.collective && a.payload == b.payload && a.dtype == b.dtype)
        continue;
      error(fmt::format("collective {} over {} differs: {} with {} B {}, but {} with {} B {}", k,
                        name_of(group), name(0, first[k]), a.payload.count(), name_of(a.dtype),
                        name(c, other[k]), b.payload.count(), name_of(b.dtype)));
      return;
    }
    if (first.size() == other.size()) return;
    const bool more = first.size() > other.size();
    const std::size_t k = std::min(first.size(), other.size());
    error(fmt::format("collective {} over {}: {} is entered, but not by stage {}", k, name_of(group),
                      more ? name(0, first[k]) : name(c, other[k]), more ? c : 0));
  }

  const StepProgram& program_;
  Errors errors_;
};

}  // namespace

Errors check(const StepProgram& program) { return ProgramChecker(program).run(); }

}  // namespace foretrain
