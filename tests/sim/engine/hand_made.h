// Programs made by hand, for tests that know what must come out: ops whose device time is given in
// picoseconds, on a GPU that moves one byte per picosecond.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "model/hardware/cluster.h"
#include "model/hardware/profile.h"
#include "model/program/step_program.h"

namespace foretrain::hand_made {

// One memory-bound op of so many picoseconds.
inline Op op(std::int64_t ps, int launches = 1) {
  Op made;
  made.name = "op";
  made.read = Bytes(ps);
  made.launches = launches;
  return made;
}

inline Op sync() {
  Op made;
  made.kind = OpKind::host_sync;
  made.name = "sync";
  return made;
}

inline Op collective(CollectiveKind kind, MeshDims dims, Bytes bytes) {
  Op made;
  made.kind = OpKind::collective;
  made.name = "collective";
  made.collective = CollectiveShape{kind, dims, bytes, DType::fp32};
  return made;
}

struct Draft {
  InstructionKind kind = InstructionKind::forward;
  StreamKind stream = StreamKind::compute;
  std::int32_t op_list = -1;
  std::vector<Dependency> after;
  std::int32_t block = 0;
  std::int32_t micro_batch = 0;
  std::int32_t unit = -1;
  CollectiveKind collective = CollectiveKind::all_reduce;
  MeshDims group{};
  Bytes payload;
  std::int32_t peer = -1;
  std::int32_t tag = -1;
  bool blocks_host = false;
};

class Program {
 public:
  explicit Program(Mesh mesh = {}) {
    program.mesh = mesh;
    program.plan.pp = mesh.at(MeshDim::pp);
    program.plan.dp = mesh.at(MeshDim::dp);
    program.plan.fsdp = mesh.at(MeshDim::fsdp);
    program.plan.tp = mesh.at(MeshDim::tp);
    program.classes.resize(static_cast<std::size_t>(mesh.at(MeshDim::pp)));
    for (std::size_t c = 0; c < program.classes.size(); ++c) {
      program.classes[c].stage = static_cast<std::int32_t>(c);
      program.classes[c].gradients = GradientAllocation::preallocated;
    }
    program.blocks.resize(1);
  }

  std::int32_t list(std::vector<Op> ops) {
    OpList made;
    made.ops = std::move(ops);
    program.op_lists.push_back(std::move(made));
    return static_cast<std::int32_t>(program.op_lists.size()) - 1;
  }

  InstructionId add(std::size_t stage, const Draft& draft) {
    RankClass& rank_class = program.classes[stage];
    Instruction i;
    i.kind = draft.kind;
    i.stream = draft.stream;
    i.op_list = draft.op_list;
    i.block = draft.block;
    i.micro_batch = draft.micro_batch;
    i.unit = draft.unit;
    i.collective = draft.collective;
    i.group = draft.group;
    i.payload = draft.payload;
    i.peer_stage = draft.peer;
    i.tag = draft.tag;
    i.blocks_host = draft.blocks_host;
    i.dependencies_begin = static_cast<std::int32_t>(rank_class.dependencies.size());
    for (const Dependency& d : draft.after) rank_class.dependencies.push_back(d);
    i.dependencies_end = static_cast<std::int32_t>(rank_class.dependencies.size());
    rank_class.instructions.push_back(i);
    return InstructionId{static_cast<std::int32_t>(rank_class.instructions.size()) - 1};
  }

  // One forward of so many picoseconds of device work.
  InstructionId compute(std::size_t stage, std::int64_t ps, std::vector<Dependency> after = {}) {
    Draft draft;
    draft.op_list = list({op(ps)});
    draft.after = std::move(after);
    return add(stage, draft);
  }

  StepProgram program;
};

// As many GPUs as `gpus` on one machine; one byte of DRAM traffic takes one picosecond.
inline Cluster cluster(std::int32_t gpus) {
  ClusterSpec spec = *find_cluster("4xa30_pcie");
  spec.name = "test";
  spec.gpus_per_node = gpus;
  // A trifle more than 1e12, because times are rounded up.
  spec.gpu.memory_bandwidth = Bandwidth::bytes_per_s(1e12 * (1 + 1e-13));
  spec.gpu.fp32 = FlopRate::tflops(1e6);
  return build(spec);
}

// No overheads at all: device time is bytes, the host is infinitely fast, communication does not interfere.
inline Profile plain_profile() {
  Profile profile = default_profile();
  for (ParameterValue& value : profile.values) value.standard_error = 0;
  profile.at(ParameterId::memory_efficiency).value = 1;
  profile.at(ParameterId::kernel_overhead_us).value = 0;
  profile.at(ParameterId::multi_gpu_slowdown).value = 1;
  profile.at(ParameterId::communication_interference).value = 0;
  profile.at(ParameterId::host_time_per_op_us).value = 0;
  profile.at(ParameterId::host_time_per_collective_us).value = 0;
  return profile;
}

}  // namespace foretrain::hand_made
