// What to say when nothing can happen any more although instructions are left.
#include <string>

#include <fmt/format.h>

#include "sim/engine/executor.h"

namespace foretrain {
namespace {

// "rank 3" or "ranks 8-15": all ranks of a stage follow one another, since pp is the slowest dimension.
std::string ranks_of(const Mesh& mesh, std::int32_t stage) {
  const std::int32_t each = mesh.world() / mesh.at(MeshDim::pp);
  if (each == 1) return fmt::format("rank {}", stage);
  return fmt::format("ranks {}-{}", stage * each, (stage + 1) * each - 1);
}

}  // namespace

Error Executor::deadlock() const {
  std::string text = "deadlock: ";
  const std::int32_t stalled = activities_.stalled();
  if (stalled > 0) text = fmt::format("{} transfers get no bandwidth: ", stalled);
  bool first = true;
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(actors_.size()); ++c) {
    const std::string line = waiting_line(c);
    if (line.empty()) continue;
    text += first ? "" : "; ";
    text += line;
    first = false;
  }
  return Error{
      ErrorCode::infeasible,
      {},
      text,
      "Every send needs its recv, every collective all its members, in an order that all can follow."};
}

// "ranks 0-3 (stage 0) wait in \"Recv B mb0\" for stage 1 to send, ..."; empty when the class is through.
std::string Executor::waiting_line(std::int32_t c) const {
  const Actor& a = actor(c);
  const PreparedClass& plan = prepared_.classes[static_cast<std::size_t>(c)];
  std::string what;
  const auto add = [&what](const std::string& part) {
    if (!what.empty()) what += ", ";
    what += part;
  };
  for (std::size_t s = 0; s < kStreams; ++s) {
    const Stream& st = a.streams[s];
    if (st.head == plan.order[s].size()) continue;
    const std::int32_t i = plan.order[s][st.head];
    const Instruction& mine = instruction(c, i);
    const std::string label = label_of(mine);
    if (st.instruction >= 0) {
      const Encounter& own = prepared(c, i).encounter;
      if (st.communicating) {
        add(fmt::format("in \"{}\" for bandwidth", label));
      } else if (st.stage != Stage::ops && own.meeting == Meeting::transfer) {
        add(fmt::format("in \"{}\" for stage {} to {} (tag {})", label, mine.peer_stage,
                        mine.kind == InstructionKind::send ? "receive" : "send", mine.tag));
      } else {
        std::string missing;
        for (std::int32_t other = 0; other < static_cast<std::int32_t>(actors_.size()); ++other) {
          if (other == c) continue;
          const auto slot = static_cast<std::size_t>(own.meeting == Meeting::joint ? own.slot : 0);
          if (own.meeting == Meeting::joint && actor(other).joint_turn[slot] >= a.joint_turn[slot]) continue;
          missing += (missing.empty() ? "" : ", ") + ranks_of(prepared_.program->mesh, other);
        }
        add(fmt::format("in \"{}\" for {}", label, missing));
      }
      continue;
    }
    if (state(c, i).phase == Phase::unissued) continue;  // the host's line says why
    const RankClass& rank_class = prepared_.program->classes[static_cast<std::size_t>(c)];
    for (const Dependency& d : rank_class.dependencies_of(mine)) {
      const InstructionState& other = state(c, d.instruction.value);
      if (other.phase == Phase::finished || (d.op >= 0 && other.passed_ops > d.op)) continue;
      add(fmt::format("before \"{}\" for \"{}\"{}", label, label_of(instruction(c, d.instruction.value)),
                      other.phase == Phase::unissued ? ", which is not issued" : ""));
      break;
    }
  }
  if (a.host.state == Host::State::waits_for_instruction) {
    add(fmt::format("with the host for \"{}\"", label_of(instruction(c, a.host.waits_for))));
  }
  if (what.empty()) return {};
  return fmt::format("{} (stage {}) wait {}", ranks_of(prepared_.program->mesh, c), c, what);
}

}  // namespace foretrain
