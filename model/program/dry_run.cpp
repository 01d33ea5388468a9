#include "model/program/dry_run.h"

#include <array>

#include <fmt/format.h>

namespace foretrain {
namespace {

class DryRun {
 public:
  explicit DryRun(const StepProgram& program) : program_(program), ranks_(program.classes.size()) {
    for (std::size_t c = 0; c < ranks_.size(); ++c) {
      const std::vector<Instruction>& instructions = program.classes[c].instructions;
      ranks_[c].done.assign(instructions.size(), false);
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        ranks_[c].queues[static_cast<std::size_t>(instructions[i].stream)].push_back(i);
      }
    }
  }

  std::vector<std::string> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t c = 0; c < ranks_.size(); ++c) {
        while (advance(c)) progress = true;
      }
    }
    std::vector<std::string> waiting;
    for (std::size_t c = 0; c < ranks_.size(); ++c) {
      for (int s = 0; s < kStreams; ++s) {
        if (const auto head = head_of(c, s)) waiting.push_back(reason(c, *head - 1));
      }
    }
    return waiting;
  }

 private:
  struct RankState {
    std::array<std::vector<std::size_t>, kStreams> queues;
    std::array<std::size_t, kStreams> next{};
    std::vector<bool> done;
    std::size_t issued = 0;  // instructions that the host has issued
  };

  const Instruction& at(std::size_t c, std::size_t i) const { return program_.classes[c].instructions[i]; }

  // One more than the instruction that stands first in the stream; nothing when the stream is empty.
  struct Head {
    std::size_t value = 0;
    explicit operator bool() const { return value > 0; }
    std::size_t operator*() const { return value; }
  };
  Head head_of(std::size_t c, int stream) const {
    const RankState& rank = ranks_[c];
    const auto s = static_cast<std::size_t>(stream);
    return rank.next[s] < rank.queues[s].size() ? Head{rank.queues[s][rank.next[s]] + 1} : Head{};
  }

  void issue(std::size_t c) {
    RankState& rank = ranks_[c];
    const std::size_t count = rank.done.size();
    while (rank.issued < count &&
           (rank.issued == 0 || !at(c, rank.issued - 1).blocks_host || rank.done[rank.issued - 1])) {
      ++rank.issued;
    }
  }

  // First in its stream, issued, and every dependency done.
  bool ready(std::size_t c, std::size_t i) {
    issue(c);
    const RankState& rank = ranks_[c];
    if (i >= rank.issued) return false;
    for (const Dependency& d : program_.classes[c].dependencies_of(at(c, i))) {
      if (!rank.done[static_cast<std::size_t>(d.instruction.value)]) return false;
    }
    return true;
  }

  void finish(std::size_t c, std::size_t i) {
    ranks_[c].done[i] = true;
    ++ranks_[c].next[static_cast<std::size_t>(at(c, i).stream)];
  }

  bool advance(std::size_t c) {
    bool progress = false;
    for (int s = 0; s < kStreams; ++s) {
      const Head head = head_of(c, s);
      if (head && ready(c, *head - 1)) progress = try_finish(c, *head - 1) || progress;
    }
    return progress;
  }

  bool try_finish(std::size_t c, std::size_t i) {
    const Instruction& item = at(c, i);
    if (item.kind == InstructionKind::send || item.kind == InstructionKind::recv) {
      const auto peer = static_cast<std::size_t>(item.peer_stage);
      const InstructionKind wanted =
          item.kind == InstructionKind::send ? InstructionKind::recv : InstructionKind::send;
      for (int s = 0; s < kStreams; ++s) {
        const Head other = head_of(peer, s);
        if (!other) continue;
        const Instruction& end = at(peer, *other - 1);
        if (end.kind != wanted || end.tag != item.tag || end.peer_stage != static_cast<std::int32_t>(c))
          continue;
        if (!ready(peer, *other - 1)) return false;
        finish(peer, *other - 1);
        finish(c, i);
        return true;
      }
      return false;
    }
    if (is_group_collective(item.kind) && item.group.has(MeshDim::pp)) {
      std::vector<std::size_t> members;
      for (std::size_t other = 0; other < ranks_.size(); ++other) {
        const Head head = head_of(other, static_cast<int>(item.stream));
        if (!head || at(other, *head - 1).kind != item.kind || at(other, *head - 1).group != item.group ||
            !ready(other, *head - 1)) {
          return false;
        }
        members.push_back(*head - 1);
      }
      for (std::size_t other = 0; other < ranks_.size(); ++other) finish(other, members[other]);
      return true;
    }
    finish(c, i);
    return true;
  }

  std::string reason(std::size_t c, std::size_t i) {
    const std::string name = instruction_name(program_, c, i);
    if (i >= ranks_[c].issued) return fmt::format("{} is never issued: the host waits", name);
    for (const Dependency& d : program_.classes[c].dependencies_of(at(c, i))) {
      const auto on = static_cast<std::size_t>(d.instruction.value);
      if (!ranks_[c].done[on]) {
        return fmt::format("{} waits forever for instruction {} \"{}\"", name, on, label_of(at(c, on)));
      }
    }
    const Instruction& item = at(c, i);
    if (item.kind == InstructionKind::send || item.kind == InstructionKind::recv) {
      return fmt::format("{} waits forever for stage {} (tag {})", name, item.peer_stage, item.tag);
    }
    return fmt::format("{} waits forever for the other members of its group over {}", name,
                       name_of(item.group));
  }

  const StepProgram& program_;
  std::vector<RankState> ranks_;
};

}  // namespace

bool is_group_collective(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::all_gather_params:
    case InstructionKind::reduce_scatter_grads:
    case InstructionKind::all_reduce_grads:
    case InstructionKind::all_reduce_flag:
    case InstructionKind::broadcast_buffers:
      return true;
    default:
      return false;
  }
}

std::string instruction_name(const StepProgram& program, std::size_t rank_class, std::size_t instruction) {
  const std::int32_t stage = static_cast<std::int32_t>(rank_class);
  return fmt::format("rank {} (stage {}) instruction {} \"{}\"", program.mesh.rank_at({stage, 0, 0, 0}).value,
                     stage, instruction, label_of(program.classes[rank_class].instructions[instruction]));
}

std::vector<std::string> find_deadlock(const StepProgram& program) { return DryRun(program).run(); }

}  // namespace foretrain
