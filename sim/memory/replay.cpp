#include "sim/memory/replay.h"

#include <algorithm>
#include <map>

namespace foretrain {
namespace {

using Handle = CachingAllocator::Handle;

class Replayer {
 public:
  Replayer(const StepProgram& program, const RankClass& rank_class, const ReplayOptions& options)
      : program_(program), class_(rank_class), options_(options), allocator_(options.capacity) {
    buffers_.resize(rank_class.buffers.size());
    gradients_.resize(program.blocks.size());
    in_flight_.resize(std::max<std::size_t>(program.blocks.size(), 1) + 1, 0);
  }

  void persistent() {
    allocate(options_.constant, MemoryClass::workspace);
    for (std::size_t i = 0; i < class_.buffers.size(); ++i) {
      if (class_.buffers[i].persistent) allocate_buffer(i);
    }
  }

  void apply(const MemoryEvent& event) {
    const Instruction& instruction = class_.instructions[static_cast<std::size_t>(event.instruction)];
    switch (event.kind) {
      case MemoryEvent::Kind::begin:
        for (const std::int32_t b : class_.allocates_of(instruction)) {
          allocate_buffer(static_cast<std::size_t>(b));
        }
        break;
      case MemoryEvent::Kind::ops:
        run_ops(instruction, event.op_begin, event.op_end);
        break;
      case MemoryEvent::Kind::end:
        for (const std::int32_t b : class_.frees_of(instruction)) free_buffer(static_cast<std::size_t>(b));
        for (const TensorRef& ref : class_.tensor_frees_of(instruction)) {
          free_tensor(ref.block, instruction.micro_batch, ref.tensor);
        }
        if (instruction.kind == InstructionKind::zero_grad) free_gradients();
        break;
    }
    if (options_.over_time) out_.over_time.emplace_back(event.time_ps, allocator_.allocated().count());
  }

  MemoryReplay finish() {
    out_.peak_allocated = allocator_.peak_allocated();
    out_.peak_reserved = allocator_.peak_reserved();
    out_.exceeded = allocator_.exceeded();
    return std::move(out_);
  }

 private:
  struct Live {
    Handle handle = CachingAllocator::kNone;
    MemoryClass memory_class = MemoryClass::activations;
    bool forward = false;  // made by a forward
  };
  struct Table {
    std::vector<Live> tensors;
    std::int32_t from_forward = 0;
  };

  Live allocate(Bytes bytes, MemoryClass memory_class) {
    Live live{allocator_.allocate(bytes), memory_class};
    if (live.handle == CachingAllocator::kNone) return live;
    Bytes& now = now_[static_cast<std::size_t>(memory_class)];
    now += allocator_.block_size(live.handle);
    Bytes& most = out_.peak_of_class[static_cast<std::size_t>(memory_class)];
    most = std::max(most, now);
    if (allocator_.allocated() > highest_) {
      highest_ = allocator_.allocated();
      out_.at_peak = now_;
    }
    return live;
  }

  void release(Live& live) {
    if (live.handle == CachingAllocator::kNone) return;
    now_[static_cast<std::size_t>(live.memory_class)] -= allocator_.block_size(live.handle);
    allocator_.free(live.handle);
    live.handle = CachingAllocator::kNone;
  }

  void allocate_buffer(std::size_t index) {
    const Buffer& buffer = class_.buffers[index];
    std::vector<Live>& parts = buffers_[index];
    if (!parts.empty()) return;
    const std::int64_t count = std::max<std::int64_t>(1, buffer.count);
    const std::int64_t each = buffer.bytes.count() / count;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t bytes = i == 0 ? buffer.bytes.count() - each * (count - 1) : each;
      parts.push_back(allocate(Bytes(bytes), buffer.memory_class));
    }
  }

  void free_buffer(std::size_t index) {
    if (class_.buffers[index].persistent) return;
    for (Live& part : buffers_[index]) release(part);
    buffers_[index].clear();
  }

  Table& table(std::int32_t block, std::int32_t micro_batch) { return tables_[{block, micro_batch}]; }

  void free_tensor(std::int32_t block, std::int32_t micro_batch, std::int32_t tensor) {
    Table& home = table(block, micro_batch);
    if (tensor < 0 || static_cast<std::size_t>(tensor) >= home.tensors.size()) return;
    Live& live = home.tensors[static_cast<std::size_t>(tensor)];
    if (live.forward && live.handle != CachingAllocator::kNone && --home.from_forward == 0) {
      --in_flight_[static_cast<std::size_t>(block) + 1];
    }
    release(live);
  }

  void make_tensor(const Instruction& instruction, const TensorTable& shapes, std::int32_t tensor) {
    Table& home = table(instruction.block, instruction.micro_batch);
    if (home.tensors.size() < shapes.size()) home.tensors.resize(shapes.size());
    const Tensor& shape = shapes[static_cast<std::size_t>(tensor)];
    Live& live = home.tensors[static_cast<std::size_t>(tensor)];
    if (live.handle != CachingAllocator::kNone)
      free_tensor(instruction.block, instruction.micro_batch, tensor);
    live = allocate(shape.bytes, shape.memory_class);
    live.forward = instruction.kind == InstructionKind::forward && live.handle != CachingAllocator::kNone;
    if (live.forward && home.from_forward++ == 0) {
      const std::int32_t count = ++in_flight_[static_cast<std::size_t>(instruction.block) + 1];
      out_.micro_batches_in_flight = std::max(out_.micro_batches_in_flight, count);
    }
  }

  void complete_gradient(std::int32_t block, std::int32_t parameter) {
    const std::vector<Bytes>& sizes = program_.blocks[static_cast<std::size_t>(block)].gradient_bytes;
    std::vector<Live>& live = gradients_[static_cast<std::size_t>(block)];
    if (live.size() < sizes.size()) live.resize(sizes.size());
    const auto p = static_cast<std::size_t>(parameter);
    if (p >= sizes.size() || live[p].handle != CachingAllocator::kNone) return;
    live[p] = allocate(sizes[p], MemoryClass::gradients);
  }

  void free_gradients() {
    for (std::vector<Live>& block : gradients_) {
      for (Live& live : block) release(live);
    }
  }

  void run_ops(const Instruction& instruction, std::int32_t begin, std::int32_t end) {
    const OpList& list = program_.op_lists[static_cast<std::size_t>(instruction.op_list)];
    static const TensorTable kNoTensors;
    const TensorTable& shapes = list.tensor_table < 0
                                    ? kNoTensors
                                    : program_.tensor_tables[static_cast<std::size_t>(list.tensor_table)];
    const bool on_completion = class_.gradients == GradientAllocation::on_completion;
    for (std::int32_t i = begin; i < end; ++i) {
      const Op& op = list.ops[static_cast<std::size_t>(i)];
      if (op.kind == OpKind::matmul) need_workspace(instruction.kind);
      for (const std::int32_t t : op.allocates) {
        if (t >= 0 && static_cast<std::size_t>(t) < shapes.size()) make_tensor(instruction, shapes, t);
      }
      if (on_completion && instruction.block >= 0) {
        for (const std::int32_t p : op.completes) complete_gradient(instruction.block, p);
      }
      for (const std::int32_t t : op.frees) free_tensor(instruction.block, instruction.micro_batch, t);
    }
  }

  // PyTorch keeps a cuBLAS handle and its workspace per thread: autograd's backward runs in one of its own.
  void need_workspace(InstructionKind kind) {
    const bool forward = kind == InstructionKind::forward;
    bool& have = forward ? forward_workspace_ : backward_workspace_;
    if (!have) allocate(options_.matmul_workspace, MemoryClass::workspace);
    have = true;
  }

  const StepProgram& program_;
  const RankClass& class_;
  bool forward_workspace_ = false, backward_workspace_ = false;
  ReplayOptions options_;
  CachingAllocator allocator_;
  MemoryReplay out_;
  Bytes highest_;
  std::array<Bytes, kMemoryClasses> now_{};
  std::vector<std::vector<Live>> buffers_;                         // by buffer
  std::vector<std::vector<Live>> gradients_;                       // by block and parameter
  std::map<std::pair<std::int32_t, std::int32_t>, Table> tables_;  // by block and micro-batch
  std::vector<std::int32_t> in_flight_;                            // by block + 1
};

}  // namespace

MemoryReplay replay_memory(const StepProgram& program, const RankClass& rank_class,
                           std::span<const MemoryEvent> events, const ReplayOptions& options) {
  Replayer replayer(program, rank_class, options);
  replayer.persistent();
  for (const MemoryEvent& event : events) replayer.apply(event);
  return replayer.finish();
}

Bytes cublas_workspace(GpuArchitecture architecture) {
  switch (architecture) {
    case GpuArchitecture::cpu:
      return Bytes(0);
    case GpuArchitecture::hopper:
    case GpuArchitecture::blackwell:
      return 32 * kMiB;
    default:
      return Bytes(2 * 4096 * 1024 + 8 * 16 * 1024);
  }
}

std::vector<MemoryEvent> issue_order(const StepProgram& program, const RankClass& rank_class) {
  std::vector<MemoryEvent> events;
  for (std::size_t i = 0; i < rank_class.instructions.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const std::int32_t list = rank_class.instructions[i].op_list;
    events.push_back({MemoryEvent::Kind::begin, id, 0, 0, 0});
    if (list >= 0) {
      const auto ops = static_cast<std::int32_t>(program.op_lists[static_cast<std::size_t>(list)].ops.size());
      events.push_back({MemoryEvent::Kind::ops, id, 0, ops, 0});
    }
    events.push_back({MemoryEvent::Kind::end, id, 0, 0, 0});
  }
  return events;
}

}  // namespace foretrain
