#include "sim/engine/prepared.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "sim/device/op_cost.h"

namespace foretrain {
namespace {

class Preparation {
 public:
  Preparation(Prepared& prepared, const StepProgram& program) : out_(prepared), program_(program) {}

  Errors run() {
    out_.classes.resize(program_.classes.size());
    for (std::size_t c = 0; c < program_.classes.size(); ++c) prepare_class(c);
    if (errors_.empty()) out_.patterns.compress();
    return std::move(errors_);
  }

 private:
  void fault(std::string message, ErrorCode code = ErrorCode::input) {
    if (errors_.size() < 20) errors_.push_back(Error{code, {}, std::move(message), {}});
  }

  // Groups over `dims`, by the stage of their first member; one entry when the groups span the stages.
  const std::vector<std::vector<std::vector<Rank>>>& groups_of(MeshDims dims) {
    const auto known = groups_.find(dims.mask);
    if (known != groups_.end()) return known->second;
    const bool spans = dims.has(MeshDim::pp);
    std::vector<std::vector<std::vector<Rank>>> by_stage(spans ? 1 : program_.classes.size());
    for (std::vector<Rank>& group : program_.mesh.groups(dims)) {
      const std::int32_t stage = spans ? 0 : program_.mesh.coordinate(group.front(), MeshDim::pp);
      by_stage[static_cast<std::size_t>(stage)].push_back(std::move(group));
    }
    return groups_.emplace(dims.mask, std::move(by_stage)).first->second;
  }

  std::int32_t exchange(std::int32_t pattern, Bytes payload, CollectiveKind kind, std::int32_t group_size) {
    const auto key = std::pair(pattern, payload.count());
    const auto known = exchange_index_.find(key);
    if (known != exchange_index_.end()) return known->second;
    const auto index = static_cast<std::int32_t>(out_.exchanges.size());
    out_.exchanges.push_back(Exchange{pattern, payload, kind, group_size});
    exchange_index_.emplace(key, index);
    return index;
  }

  std::int32_t add_pattern(CollectiveKind kind, std::vector<std::vector<Rank>> groups) {
    auto index = out_.patterns.add(PatternKey{kind, std::move(groups)});
    if (index) return *index;
    fault(index.error(), ErrorCode::infeasible);
    return -1;
  }

  Encounter collective(std::size_t c, CollectiveKind kind, MeshDims dims, Bytes payload) {
    Encounter encounter;
    const std::int32_t size = program_.mesh.group_size(dims);
    if (size <= 1) return encounter;
    const bool spans = dims.has(MeshDim::pp) && program_.classes.size() > 1;
    encounter.meeting = spans ? Meeting::joint : Meeting::local;
    if (spans) {
      encounter.slot = joint_index_.try_emplace(dims.mask, out_.joint_kinds).first->second;
      out_.joint_kinds = std::max(out_.joint_kinds, encounter.slot + 1);
    }
    if (payload.count() <= 0) return encounter;
    const auto key = std::tuple(kind, dims.mask, spans ? std::size_t{0} : c);
    auto known = pattern_index_.find(key);
    if (known == pattern_index_.end()) {
      const auto& groups = groups_of(dims);
      const std::int32_t pattern = add_pattern(kind, groups[groups.size() == 1 ? 0 : c]);
      known = pattern_index_.emplace(key, pattern).first;
    }
    if (known->second >= 0) encounter.exchange = exchange(known->second, payload, kind, size);
    return encounter;
  }

  Encounter transfer(std::size_t c, const Instruction& instruction) {
    Encounter encounter;
    encounter.meeting = Meeting::transfer;
    const bool sends = instruction.kind == InstructionKind::send;
    const auto me = static_cast<std::int32_t>(c);
    const std::int32_t from = sends ? me : instruction.peer_stage;
    const std::int32_t to = sends ? instruction.peer_stage : me;
    // The n-th send of a tag meets the n-th recv of it.
    const auto end = std::tuple(from, to, instruction.tag, sends);
    const std::int32_t turn = turns_[end]++;
    const auto key = std::tuple(from, to, instruction.tag, turn);
    const auto slot = slots_.try_emplace(key, out_.transfer_slots);
    if (slot.second) ++out_.transfer_slots;
    encounter.slot = slot.first->second;
    if (instruction.payload.count() <= 0) return encounter;
    const auto ends = std::pair(from, to);
    auto known = transfer_index_.find(ends);
    if (known == transfer_index_.end()) {
      std::vector<std::vector<Rank>> groups;
      for (std::int32_t r = 0; r < program_.mesh.world(); ++r) {
        if (program_.mesh.coordinate(Rank{r}, MeshDim::pp) != from) continue;
        groups.push_back({Rank{r}, program_.mesh.moved(Rank{r}, MeshDim::pp, to)});
      }
      known = transfer_index_.emplace(ends, add_pattern(CollectiveKind::send_recv, std::move(groups))).first;
    }
    if (known->second >= 0) {
      encounter.exchange = exchange(known->second, instruction.payload, CollectiveKind::send_recv, 2);
    }
    return encounter;
  }

  void prepare_inside(std::size_t c, std::int32_t list) {
    PreparedClass& prepared = out_.classes[c];
    if (prepared.inside.contains(list)) return;
    std::vector<Encounter>& encounters = prepared.inside[list];
    for (const Op& op : program_.op_lists[static_cast<std::size_t>(list)].ops) {
      if (op.kind != OpKind::collective) continue;
      encounters.push_back(collective(c, op.collective.kind, op.collective.group, op.collective.bytes));
    }
  }

  bool in_range(std::size_t c, std::size_t i) {
    const RankClass& rank_class = program_.classes[c];
    const Instruction& instruction = rank_class.instructions[i];
    const auto where = [&] { return fmt::format("stage {}, \"{}\"", c, label_of(instruction)); };
    if (instruction.op_list >= static_cast<std::int32_t>(program_.op_lists.size())) {
      fault(fmt::format("{}: op list {} of {}", where(), instruction.op_list, program_.op_lists.size()));
      return false;
    }
    const bool peer = instruction.kind == InstructionKind::send || instruction.kind == InstructionKind::recv;
    if (peer && (instruction.peer_stage < 0 ||
                 instruction.peer_stage >= static_cast<std::int32_t>(program_.classes.size()))) {
      fault(fmt::format("{}: stage {} of {}", where(), instruction.peer_stage, program_.classes.size()));
      return false;
    }
    for (const Dependency& d : rank_class.dependencies_of(instruction)) {
      const std::int32_t count = static_cast<std::int32_t>(rank_class.instructions.size());
      const bool exists = d.instruction.valid() && d.instruction.value < count;
      if (!exists || d.instruction.value == static_cast<std::int32_t>(i)) {
        fault(fmt::format("{}: waits for instruction {} of {}", where(), d.instruction.value, count));
        return false;
      }
      if (d.op < 0) continue;
      const std::int32_t list =
          rank_class.instructions[static_cast<std::size_t>(d.instruction.value)].op_list;
      const std::size_t ops = list < 0 ? 0 : program_.op_lists[static_cast<std::size_t>(list)].ops.size();
      if (static_cast<std::size_t>(d.op) >= ops) {
        fault(fmt::format("{}: waits for op {} of {}", where(), d.op, ops));
        return false;
      }
    }
    return true;
  }

  void prepare_class(std::size_t c) {
    const RankClass& rank_class = program_.classes[c];
    PreparedClass& prepared = out_.classes[c];
    prepared.instructions.resize(rank_class.instructions.size());
    for (std::size_t i = 0; i < rank_class.instructions.size(); ++i) {
      if (!in_range(c, i)) return;
    }
    for (std::size_t i = 0; i < rank_class.instructions.size(); ++i) {
      const Instruction& instruction = rank_class.instructions[i];
      PreparedInstruction& mine = prepared.instructions[i];
      prepared.order[static_cast<std::size_t>(instruction.stream)].push_back(static_cast<std::int32_t>(i));
      if (instruction.op_list >= 0) prepare_inside(c, instruction.op_list);
      mine.copies = instruction.kind == InstructionKind::host_to_device ||
                    instruction.kind == InstructionKind::device_to_host ||
                    instruction.kind == InstructionKind::save;
      mine.communicates = is_communication(instruction.kind);
      if (instruction.kind == InstructionKind::send || instruction.kind == InstructionKind::recv) {
        mine.encounter = transfer(c, instruction);
      } else if (mine.communicates) {
        mine.encounter = collective(c, instruction.collective, instruction.group, instruction.payload);
      }
      add_dependencies(rank_class, prepared, static_cast<std::int32_t>(i));
    }
  }

  // Markers where other instructions wait inside op lists; the last op waited for (in issue order) is where
  // the host issues the waiter.
  static void add_dependencies(const RankClass& rank_class, PreparedClass& prepared, std::int32_t i) {
    const Instruction& instruction = rank_class.instructions[static_cast<std::size_t>(i)];
    std::pair<std::int32_t, std::int32_t> hook{-1, -1};
    for (const Dependency& d : rank_class.dependencies_of(instruction)) {
      std::vector<std::int32_t>& dependents =
          prepared.instructions[static_cast<std::size_t>(d.instruction.value)].dependents;
      if (dependents.empty() || dependents.back() != i) dependents.push_back(i);
      if (d.op < 0) continue;
      marker(prepared, d.instruction.value, d.op + 1);
      hook = std::max(hook, std::pair(d.instruction.value, d.op + 1));
    }
    if (hook.first < 0) return;
    prepared.instructions[static_cast<std::size_t>(i)].hooked = true;
    marker(prepared, hook.first, hook.second).hooked.push_back(i);
  }

  static Marker& marker(PreparedClass& prepared, std::int32_t instruction, std::int32_t op_end) {
    std::vector<Marker>& markers = prepared.instructions[static_cast<std::size_t>(instruction)].markers;
    const auto at = std::lower_bound(markers.begin(), markers.end(), op_end,
                                     [](const Marker& m, std::int32_t end) { return m.op_end < end; });
    if (at != markers.end() && at->op_end == op_end) return *at;
    return *markers.insert(at, Marker{op_end, {}});
  }

  Prepared& out_;
  const StepProgram& program_;
  Errors errors_;
  std::map<std::uint8_t, std::vector<std::vector<std::vector<Rank>>>> groups_;
  std::map<std::pair<std::int32_t, std::int64_t>, std::int32_t> exchange_index_;
  std::map<std::uint8_t, std::int32_t> joint_index_;
  std::map<std::tuple<CollectiveKind, std::uint8_t, std::size_t>, std::int32_t> pattern_index_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, bool>, std::int32_t> turns_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>, std::int32_t> slots_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> transfer_index_;
};

}  // namespace

bool is_communication(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::all_gather_params:
    case InstructionKind::reduce_scatter_grads:
    case InstructionKind::all_reduce_grads:
    case InstructionKind::all_reduce_flag:
    case InstructionKind::broadcast_buffers:
    case InstructionKind::send:
    case InstructionKind::recv:
      return true;
    default:
      return false;
  }
}

Prepared::Prepared(const StepProgram& the_program, const Cluster& the_cluster)
    : program(&the_program), cluster(&the_cluster), patterns(the_cluster) {}

Expected<Prepared> prepare(const StepProgram& program, const Cluster& cluster) {
  const std::int32_t world = program.mesh.world();
  if (static_cast<std::size_t>(program.mesh.at(MeshDim::pp)) != program.classes.size()) {
    return fail(ErrorCode::internal, fmt::format("the program has {} rank classes; its mesh has {} stages",
                                                 program.classes.size(), program.mesh.at(MeshDim::pp)));
  }
  if (world > cluster.gpu_count()) {
    return fail(ErrorCode::infeasible,
                fmt::format("the plan needs {} GPUs; cluster \"{}\" has {}", world, cluster.name,
                            cluster.gpu_count()),
                "Use a smaller plan (dp x fsdp x tp x pp) or a cluster with more nodes.");
  }
  Prepared prepared(program, cluster);
  prepared.multi_gpu = world > 1;
  for (const OpList& list : program.op_lists) {
    prepared.kernel_model.push_back(kernel_model_times(list, cluster.gpu));
  }
  Errors errors = Preparation(prepared, program).run();
  if (!errors.empty()) return fail(std::move(errors));
  return prepared;
}

}  // namespace foretrain
