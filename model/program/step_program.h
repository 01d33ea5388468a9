// StepProgram: for every rank, the ordered instructions of one training step. Lowered once from model,
// training set-up and plan; executed by the simulator and by the runtime. There is no second
// description of a strategy anywhere.
//
// Ranks that do the same share one instruction list (a rank class): one class per pipeline stage, so
// that 16,384 ranks are a few thousand instructions. Ranks couple only through collectives (all
// members of a group issue them in the same order) and matched send/recv.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/arch/transformer.h"
#include "model/base/error.h"
#include "model/base/ids.h"
#include "model/ops/op.h"
#include "model/plan/mesh.h"
#include "model/plan/parallel_plan.h"
#include "model/plan/training.h"

namespace foretrain {

enum class InstructionKind : std::uint8_t {
  forward,
  backward,
  backward_input,
  backward_weight,
  recompute,  // of a block and micro-batch
  all_gather_params,
  reduce_scatter_grads,
  free_params,       // of a shard unit
  all_reduce_grads,  // of a bucket
  send,
  recv,  // activations or gradients, to a stage
  unscale,
  grad_norm,
  clip,
  optimizer_step,
  zero_grad,
  all_reduce_flag,  // found-inf or norm agreed by ranks
  host_to_device,
  save,
  copy_gradients,     // between gradients and buckets or flat shard units, or added to a shard
  broadcast_buffers,  // DDP's broadcast of module buffers before a forward
  device_to_host,     // loss.item()
};
std::string_view name_of(InstructionKind kind);

// Instructions of one rank run in list order per stream; streams are independent but for dependencies.
enum class StreamKind : std::uint8_t {
  compute,        // forward, backward, optimizer and the tensor-parallel collectives inside blocks
  data_parallel,  // gradient and parameter collectives
  pipeline_send,
  pipeline_recv,
  copy,  // host to device, checkpoint
};
constexpr int kStreams = 5;
std::string_view name_of(StreamKind stream);

// Waits for `instruction` of the same rank: for its end, or (op >= 0) only until its op list has got
// past that op: a gradient bucket starts when its last gradient is ready, inside a backward. The host
// issues an instruction with such a dependency from a hook, right after that op; its place in the list
// then only fixes the order within its stream.
struct Dependency {
  InstructionId instruction;
  std::int32_t op = -1;
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Instruction {
  InstructionKind kind = InstructionKind::forward;
  StreamKind stream = StreamKind::compute;
  std::int32_t block = -1;  // block of the model; -1 when it concerns none
  std::int32_t micro_batch = -1;
  std::int32_t chunk = 0;     // model chunk (interleaved schedules)
  std::int32_t unit = -1;     // gradient bucket or shard unit, numbered per stage
  std::int32_t op_list = -1;  // index into StepProgram::op_lists; -1: no device work of its own
  // Collectives and transfers.
  CollectiveKind collective = CollectiveKind::all_reduce;
  MeshDims group;  // spans of a collective
  Bytes payload;   // as nccl-tests counts (see CollectiveKind), per group
  DType dtype = DType::fp32;
  std::int32_t peer_stage = -1;  // send/recv: the pp coordinate of the other end
  // send/recv: equal at both ends, unique in the step; even: activations, odd: gradients. The exchange of a
  // tied embedding's gradient has micro_batch -1.
  std::int32_t tag = -1;
  // Dependencies and buffers: ranges in the rank class's arrays.
  std::int32_t dependencies_begin = 0, dependencies_end = 0;
  std::int32_t allocates_begin = 0, allocates_end = 0;  // buffers allocated when it starts
  std::int32_t frees_begin = 0, frees_end = 0;          // buffers freed when it ends
  // Tensors of op lists freed when it ends: of the named blocks and of this instruction's micro-batch.
  std::int32_t tensor_frees_begin = 0, tensor_frees_end = 0;
  bool blocks_host = false;  // the host waits for its end before issuing the next instruction
};

// A tensor that is not of one (block, micro-batch): parameters, gradients, optimizer state, buckets,
// gathered shard units, received activations.
struct Buffer {
  std::string name;
  Bytes bytes;
  MemoryClass memory_class = MemoryClass::parameters;
  bool persistent = false;  // allocated before the step and never freed
  std::int32_t count = 1;   // this many separate tensors of bytes/count each (allocator rounding)
};

// A tensor of a block's table that outlives the op list which allocates it and is freed by another
// instruction of the same micro-batch: a block's output (freed by the next block's backward, or by the
// send of a pipeline stage), its input gradient (freed by the backward of the block before, or by the
// send), a gradient that waits to be flattened. Tensors alive at the end of a step are freed then.
struct TensorRef {
  std::int32_t block = -1;
  std::int32_t tensor = -1;  // index into the table of the block's op lists
  friend bool operator==(const TensorRef&, const TensorRef&) = default;
};

// How backward ops allocate parameter gradients (Op::completes).
enum class GradientAllocation : std::uint8_t {
  // Each parameter's gradient (BlockParameters::gradient_bytes; 0: nothing) when the op that completes it
  // runs, unless it exists already from an earlier micro-batch; kept until zero_grad (set_to_none).
  on_completion,
  // Nothing to allocate at Op::completes: views of buckets, or tensors of the op lists.
  preallocated,
};

struct BlockParameters {
  std::vector<Bytes> gradient_bytes;  // per parameter of the block, this rank's part, gradient dtype
  std::vector<std::string> names;
};

struct RankClass {
  std::int32_t stage = 0;                 // pp coordinate
  std::vector<Instruction> instructions;  // in the order the host issues them
  std::vector<Dependency> dependencies;
  std::vector<std::int32_t> allocates, frees;  // indices into buffers; a buffer is allocated once
  std::vector<TensorRef> tensor_frees;
  std::vector<Buffer> buffers;
  GradientAllocation gradients = GradientAllocation::on_completion;
  std::vector<std::int32_t> blocks;  // blocks this stage holds, forward order
  std::int64_t parameters = 0;       // elements held by one rank when everything is gathered

  std::span<const Dependency> dependencies_of(const Instruction& i) const {
    return std::span(dependencies)
        .subspan(static_cast<std::size_t>(i.dependencies_begin),
                 static_cast<std::size_t>(i.dependencies_end - i.dependencies_begin));
  }
  std::span<const std::int32_t> allocates_of(const Instruction& i) const {
    return std::span(allocates).subspan(static_cast<std::size_t>(i.allocates_begin),
                                        static_cast<std::size_t>(i.allocates_end - i.allocates_begin));
  }
  std::span<const std::int32_t> frees_of(const Instruction& i) const {
    return std::span(frees).subspan(static_cast<std::size_t>(i.frees_begin),
                                    static_cast<std::size_t>(i.frees_end - i.frees_begin));
  }
  std::span<const TensorRef> tensor_frees_of(const Instruction& i) const {
    return std::span(tensor_frees)
        .subspan(static_cast<std::size_t>(i.tensor_frees_begin),
                 static_cast<std::size_t>(i.tensor_frees_end - i.tensor_frees_begin));
  }
};

struct StepProgram {
  TransformerConfig model;
  TrainingSpec training;
  ParallelPlan plan;
  Mesh mesh;
  std::vector<RankClass> classes;          // indexed by pp coordinate
  std::vector<OpList> op_lists;            // shared by instructions of equal shape
  std::vector<TensorTable> tensor_tables;  // OpList::tensor_table points here
  std::vector<BlockParameters> blocks;     // indexed by block
  std::vector<std::string> warnings;       // flagged in every report (pp_forward_only_ranks)

  const RankClass& class_of(Rank rank) const {
    return classes[static_cast<std::size_t>(mesh.coordinate(rank, MeshDim::pp))];
  }
};

// Lowers a plan to its program. Errors: everything that check(plan, model, training) says.
Expected<StepProgram> build_step_program(const TransformerConfig& model, const TrainingSpec& training,
                                         const ParallelPlan& plan);

// Whether the program can run: every send has its recv with equal bytes and tag, collectives are entered
// by all members in one order, dependencies point backwards in issue order or form no cycle, every op
// list index is in range. Errors name ranks and instructions.
Errors check(const StepProgram& program);

// "F3.mb1", "B3.mb1", "AllReduce bucket 2", "Send F mb0 -> stage 1": for timelines and errors.
std::string label_of(const Instruction& instruction);

}  // namespace foretrain
