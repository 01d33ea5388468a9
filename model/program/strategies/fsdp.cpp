// Fully sharded data parallelism as torch.distributed.fsdp does it (Zhao et al. 2023): parameters, gradients
// and optimizer state are shards of flat units over fsdp; a unit is gathered before it is used and its
// gradient is flattened and reduce-scattered after its backward, in every micro-batch. With dp > 1 (HSDP)
// the shards are then all-reduced over dp.
//
// Units: whole_model: all blocks of a model chunk. block: one per layer; embedding and head are the root
// unit, which stays gathered from its forward to its backward. full_shard frees a unit after its forward and
// gathers it again before its backward (the whole-model unit too); shard_grad_op frees only after backwards.
//
// The host runs ahead of the device, so gathers overlap with compute unless something stops them: at most two
// units are gathered at a time (limit_all_gathers), and collectives run in issue order. Prefetching issues
// the next unit's gather before this unit's compute, and so before its reduce-scatter in the backward.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/program/strategies/gradient_strategy.h"

namespace foretrain {
namespace {

struct Unit {
  std::vector<std::int32_t> blocks;
  std::int64_t elements = 0;  // on one tensor-parallel rank, all shards
  std::int64_t shard = 0;     // elements of one shard
  bool root = false;
  // While the instructions are issued:
  bool gathered = false;
  InstructionId gather;  // not yet waited for
  InstructionId freed;   // the last time it was freed
  std::int32_t buffer = -1;
  std::int32_t gradient_shard = -1;
};

class Fsdp : public GradientStrategy {
 public:
  explicit Fsdp(const StageContext& context) : context_(context), options_(context.plan.fsdp_options) {
    make_units();
    // A payload wider than the stored parameters would carry nothing more.
    const DType stored = context.parameter_type();
    gathered_type_ =
        size_of(options_.parameter_payload) < size_of(stored) ? options_.parameter_payload : stored;
  }

  void add_persistent_buffers() override {
    const std::int64_t width = size_of(context_.parameter_type());
    for (std::size_t u = 0; u < units_.size(); ++u) {
      context_.writer.persistent(fmt::format("shard of unit {}", u), Bytes(units_[u].shard * width),
                                 MemoryClass::parameters);
    }
    if (context_.stage.runs_backward) add_optimizer_buffers(context_, update().elements, update().tensors);
  }

  GradientAllocation allocation() const override { return GradientAllocation::preallocated; }
  BackwardForm form_of(const ComputeStep&) const override { return {false, false, GradientTensor::survives}; }

  void before(std::size_t position, InstructionDraft& draft) override {
    const ComputeStep& step = context_.stage.steps[position];
    Unit& unit = units_[unit_of(step.block)];
    if (!unit.gathered) gather(unit, step, 2);
    if (step.forward ? options_.prefetch_forward : options_.prefetch_backward) prefetch(position);
    draft.after(std::exchange(unit.gather, InstructionId{}));
  }

  void after(std::size_t position, InstructionId /*id*/, const BackwardList* list) override {
    const ComputeStep& step = context_.stage.steps[position];
    Unit& unit = units_[unit_of(step.block)];
    if (list != nullptr) {
      for (const std::int32_t tensor : list->survivors) waiting_.push_back({step.block, tensor});
    }
    if (used_later_in_task(position)) return;
    if (step.forward) {
      if (options_.sharding == FsdpSharding::full_shard && !unit.root) free(unit, step);
      return;
    }
    reduce(unit, step);
  }

  std::vector<InstructionId> after_backward() override {
    if (!last_collective_.valid()) return {};
    if (context_.training.micro_batches == 1) return {last_collective_};
    // The shards of all micro-batches but the first are added to the first's; issued here as one.
    const std::int64_t added = context_.training.micro_batches - 1;
    const Bytes shard(update().elements * size_of(context_.parameter_type()));
    Op op;
    op.role = OpRole::copy;
    op.name = "gradient.accumulate_shards";
    op.read = shard * 2 * added;
    op.written = shard * added;
    op.launches = static_cast<int>(added * update().tensors);
    InstructionDraft draft(InstructionKind::copy_gradients, StreamKind::compute);
    draft.instruction.op_list = context_.lists.add_list({op});
    draft.after(last_collective_);
    context_.writer.add(draft);
    return {};
  }

  UpdateShare update() const override {
    UpdateShare share;
    for (const Unit& unit : units_) share.elements += unit.shard;
    share.tensors = static_cast<std::int64_t>(units_.size());
    return share;
  }

  MeshDims sharded_over() const override { return mesh_dims(MeshDim::fsdp); }

 private:
  void make_units() {
    unit_of_block_.resize(static_cast<std::size_t>(block_count(context_.model)), 0);
    const auto add = [&](std::vector<std::int32_t> blocks, bool root) {
      Unit unit;
      unit.root = root;
      for (const std::int32_t block : blocks) {
        unit.elements += context_.lists.elements(block);
        unit_of_block_[static_cast<std::size_t>(block)] = units_.size();
      }
      unit.shard = (unit.elements + context_.plan.fsdp - 1) / context_.plan.fsdp;
      unit.blocks = std::move(blocks);
      units_.push_back(std::move(unit));
    };
    if (options_.unit == FsdpUnit::whole_model) {
      for (const BlockRange& chunk : context_.stage.chunks) {
        std::vector<std::int32_t> blocks;
        for (std::int32_t block = chunk.begin; block < chunk.end; ++block) blocks.push_back(block);
        add(std::move(blocks), false);
      }
      return;
    }
    std::vector<std::int32_t> root;
    for (const std::int32_t block : context_.stage.blocks) {
      if (block_kind(context_.model, block) != BlockKind::layer) root.push_back(block);
    }
    if (!root.empty()) add(std::move(root), true);
    for (const std::int32_t block : context_.stage.blocks) {
      if (block_kind(context_.model, block) == BlockKind::layer) add({block}, false);
    }
  }

  std::size_t unit_of(std::int32_t block) const { return unit_of_block_[static_cast<std::size_t>(block)]; }
  std::int32_t index_of(const Unit& unit) const { return static_cast<std::int32_t>(&unit - units_.data()); }

  bool used_later_in_task(std::size_t position) const {
    const std::vector<ComputeStep>& steps = context_.stage.steps;
    for (std::size_t i = position + 1; i < steps.size() && steps[i].task == steps[position].task; ++i) {
      if (unit_of(steps[i].block) == unit_of(steps[position].block)) return true;
      // Only the root and the whole model are used twice, and both at the end of a task.
      if (!units_[unit_of(steps[position].block)].root) return false;
    }
    return false;
  }

  // Gathers a unit. It may start when the `before_last`-th last freed unit has been freed (1: the last).
  void gather(Unit& unit, const ComputeStep& step, std::size_t before_last) {
    InstructionDraft draft(InstructionKind::all_gather_params, StreamKind::data_parallel);
    draft.instruction.collective = CollectiveKind::all_gather;
    draft.instruction.unit = index_of(unit);
    draft.instruction.block = unit.root ? -1 : step.block;
    draft.instruction.micro_batch = step.micro_batch;
    draft.instruction.chunk = step.chunk;
    draft.instruction.group = mesh_dims(MeshDim::fsdp);
    draft.instruction.dtype = gathered_type_;
    draft.instruction.payload = Bytes(unit.shard * context_.plan.fsdp * size_of(gathered_type_));
    draft.after(unit.freed);
    if (frees_.size() >= before_last) {
      const InstructionId limit = frees_[frees_.size() - before_last];
      if (limit != unit.freed) draft.after(limit);
    }
    unit.buffer = context_.writer.buffer(fmt::format("gathered unit {}", index_of(unit)),
                                         draft.instruction.payload, MemoryClass::parameters);
    draft.allocates.push_back(unit.buffer);
    unit.gather = last_collective_ = context_.writer.add(draft);
    unit.gathered = true;
  }

  // The next unit of the same forward or backward that is not gathered; one unit ahead.
  void prefetch(std::size_t position) {
    const std::vector<ComputeStep>& steps = context_.stage.steps;
    const std::size_t current = unit_of(steps[position].block);
    for (std::size_t i = position + 1; i < steps.size() && steps[i].task == steps[position].task; ++i) {
      Unit& next = units_[unit_of(steps[i].block)];
      if (unit_of(steps[i].block) == current) continue;
      if (!next.gathered) gather(next, steps[i], 1);
      return;
    }
  }

  void free(Unit& unit, const ComputeStep& step) {
    InstructionDraft draft(InstructionKind::free_params, StreamKind::compute);
    draft.instruction.unit = index_of(unit);
    draft.instruction.micro_batch = step.micro_batch;
    draft.instruction.chunk = step.chunk;
    draft.frees.push_back(unit.buffer);
    unit.freed = context_.writer.add(draft);
    unit.gathered = false;
    if (!unit.root) frees_.push_back(unit.freed);
  }

  // Flattens the unit's gradients, frees its parameters, reduces the gradient to shards.
  void reduce(Unit& unit, const ComputeStep& step) {
    const DType reduced = options_.gradient_payload;
    const std::int64_t padded = unit.shard * context_.plan.fsdp;
    const Bytes flat(padded * size_of(reduced));
    Op cat;
    cat.role = OpRole::copy;
    cat.name = "fsdp.flatten_gradients";
    cat.read = Bytes(unit.elements * size_of(context_.parameter_type()));
    cat.written = flat;
    InstructionDraft flatten(InstructionKind::copy_gradients, StreamKind::compute);
    flatten.instruction.unit = index_of(unit);
    flatten.instruction.micro_batch = step.micro_batch;
    flatten.instruction.chunk = step.chunk;
    flatten.instruction.op_list = flatten_list(unit, std::move(cat));
    const std::int32_t buffer = context_.writer.buffer(
        fmt::format("flat gradient of unit {}", index_of(unit)), flat, MemoryClass::gradients);
    flatten.allocates.push_back(buffer);
    take_waiting(unit, flatten.tensor_frees);
    const InstructionId flattened = context_.writer.add(flatten);
    free(unit, step);

    InstructionDraft scatter(InstructionKind::reduce_scatter_grads, StreamKind::data_parallel);
    scatter.instruction.collective = CollectiveKind::reduce_scatter;
    scatter.instruction.unit = index_of(unit);
    scatter.instruction.micro_batch = step.micro_batch;
    scatter.instruction.chunk = step.chunk;
    scatter.instruction.group = mesh_dims(MeshDim::fsdp);
    scatter.instruction.dtype = reduced;
    scatter.instruction.payload = flat;
    scatter.after(flattened);
    scatter.frees.push_back(buffer);
    if (unit.gradient_shard < 0) {
      unit.gradient_shard = context_.writer.buffer(fmt::format("gradient shard of unit {}", index_of(unit)),
                                                   Bytes(unit.shard * size_of(context_.parameter_type())),
                                                   MemoryClass::gradients);
      scatter.allocates.push_back(unit.gradient_shard);
    }
    last_collective_ = context_.writer.add(scatter);
    if (context_.plan.dp == 1) return;

    InstructionDraft replicate(InstructionKind::all_reduce_grads, StreamKind::data_parallel);
    replicate.instruction.unit = index_of(unit);
    replicate.instruction.micro_batch = step.micro_batch;
    replicate.instruction.chunk = step.chunk;
    replicate.instruction.group = mesh_dims(MeshDim::dp);
    replicate.instruction.dtype = reduced;
    replicate.instruction.payload = Bytes(unit.shard * size_of(reduced));
    replicate.after(last_collective_);
    last_collective_ = context_.writer.add(replicate);
  }

  // Units of equal size share the list.
  std::int32_t flatten_list(const Unit& unit, Op op) {
    for (const auto& [elements, list] : flatten_lists_) {
      if (elements == unit.elements) return list;
    }
    flatten_lists_.emplace_back(unit.elements, context_.lists.add_list({std::move(op)}));
    return flatten_lists_.back().second;
  }

  void take_waiting(const Unit& unit, std::vector<TensorRef>& into) {
    const auto of_unit = [&](const TensorRef& ref) {
      return std::find(unit.blocks.begin(), unit.blocks.end(), ref.block) != unit.blocks.end();
    };
    std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(into), of_unit);
    std::erase_if(waiting_, of_unit);
  }

  StageContext context_;
  FsdpOptions options_;
  DType gathered_type_ = DType::fp32;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_of_block_;
  std::vector<InstructionId> frees_;  // of units other than the root, in issue order
  std::vector<TensorRef> waiting_;    // gradients of this backward that no reduction has taken yet
  std::vector<std::pair<std::int64_t, std::int32_t>> flatten_lists_;
  InstructionId last_collective_;
};

}  // namespace

std::unique_ptr<GradientStrategy> make_fsdp(const StageContext& context) {
  return std::make_unique<Fsdp>(context);
}

}  // namespace foretrain
