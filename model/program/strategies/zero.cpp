// ZeRO stages 1 and 2 over dp (Rajbhandari et al. 2020), as DeepSpeed does them: buckets are
// reduce-scattered, every rank updates its share of each bucket, and the parameters are all-gathered after
// the optimizer. (torch's ZeroRedundancyOptimizer all-reduces and broadcasts instead, with more traffic.)
//
// Stage 1 keeps whole gradients in the buckets until the last micro-batch. Stage 2 has a bucket only while it
// fills and is reduced, in every micro-batch, and keeps shards.
#include <map>
#include <utility>

#include <fmt/format.h>

#include "model/program/strategies/bucketed.h"

namespace foretrain {
namespace {

class Zero : public BucketedStrategy {
 public:
  explicit Zero(const StageContext& context)
      : BucketedStrategy(context, true), shards_gradients_(context.plan.zero_stage >= 2) {
    starting_in_.resize(static_cast<std::size_t>(block_count(context.model)));
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      starting_in_[static_cast<std::size_t>(buckets_[b].parameters.front().block)].push_back(b);
    }
  }

  void add_persistent_buffers() override {
    add_parameter_buffers(context_, context_.stage.blocks);
    add_optimizer_buffers(context_, update().elements, update().tensors);
    if (shards_gradients_) return;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      context_.writer.persistent(fmt::format("bucket {}", b), padded_bytes(b), MemoryClass::gradients);
    }
  }

  GradientAllocation allocation() const override {
    return shards_gradients_ || context_.training.micro_batches == 1 ? GradientAllocation::preallocated
                                                                     : GradientAllocation::on_completion;
  }

  BackwardForm form_of(const ComputeStep& step) const override {
    BackwardForm form;
    form.accumulate = !shards_gradients_ && !step.first_backward;
    form.copy_to_bucket = synchronizes(step);
    form.tensor =
        allocation() == GradientAllocation::preallocated ? GradientTensor::until_copy : GradientTensor::none;
    return form;
  }

  void before(std::size_t position, InstructionDraft& draft) override {
    const ComputeStep& step = context_.stage.steps[position];
    if (!shards_gradients_ || step.forward) return;
    for (const std::size_t b : starting_in_[static_cast<std::size_t>(step.block)]) {
      const std::int32_t buffer =
          context_.writer.buffer(fmt::format("bucket {} of micro-batch {}", b, step.micro_batch),
                                 padded_bytes(b), MemoryClass::communication);
      draft.allocates.push_back(buffer);
      filling_[{b, step.micro_batch}] = buffer;
    }
  }

  void after_optimizer(InstructionId id) override {
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      InstructionDraft gather(InstructionKind::all_gather_params, StreamKind::data_parallel);
      gather.instruction.collective = CollectiveKind::all_gather;
      gather.instruction.unit = static_cast<std::int32_t>(b);
      gather.instruction.group = mesh_dims(MeshDim::dp);
      gather.instruction.dtype = context_.parameter_type();
      gather.instruction.payload = padded_bytes(b);
      gather.after(id);
      context_.writer.add(gather);
    }
  }

  UpdateShare update() const override {
    UpdateShare share;
    for (const Bucket& bucket : buckets_) share.elements += shard_elements(bucket);
    share.tensors = static_cast<std::int64_t>(buckets_.size());
    return share;
  }

  MeshDims sharded_over() const override { return mesh_dims(MeshDim::dp); }

 protected:
  bool synchronizes(const ComputeStep& step) const override {
    return shards_gradients_ || step.last_backward;
  }

  void reduce(std::size_t bucket, std::int32_t micro_batch, InstructionDraft draft) override {
    draft.instruction.kind = InstructionKind::reduce_scatter_grads;
    draft.instruction.collective = CollectiveKind::reduce_scatter;
    draft.instruction.payload = padded_bytes(bucket);
    draft.instruction.micro_batch = shards_gradients_ ? micro_batch : -1;
    if (shards_gradients_) {
      draft.frees.push_back(filling_[{bucket, micro_batch}]);
      if (shard_made_.size() < buckets_.size()) shard_made_.resize(buckets_.size(), false);
      if (!shard_made_[bucket]) {  // later micro-batches are added to it
        shard_made_[bucket] = true;
        draft.allocates.push_back(context_.writer.buffer(
            fmt::format("gradient shard {}", bucket),
            Bytes(shard_elements(buckets_[bucket]) * size_of(context_.parameter_type())),
            MemoryClass::gradients));
      }
    }
    last_collective_ = {context_.writer.add(draft)};
  }

  std::vector<InstructionId> finish() override {
    if (!shards_gradients_ || context_.training.micro_batches == 1) return last_collective_;
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
    for (const InstructionId id : last_collective_) draft.after(id);
    context_.writer.add(draft);
    return {};
  }

 private:
  std::int64_t shard_elements(const Bucket& bucket) const {
    return (bucket.elements + context_.plan.dp - 1) / context_.plan.dp;
  }
  Bytes padded_bytes(std::size_t bucket) const {
    return Bytes(shard_elements(buckets_[bucket]) * context_.plan.dp * size_of(context_.parameter_type()));
  }

  bool shards_gradients_;
  std::vector<std::vector<std::size_t>> starting_in_;  // by block: buckets whose first gradient it makes
  std::map<std::pair<std::size_t, std::int32_t>, std::int32_t> filling_;  // (bucket, micro-batch) -> buffer
  std::vector<bool> shard_made_;
};

}  // namespace

std::unique_ptr<GradientStrategy> make_zero(const StageContext& context) {
  return std::make_unique<Zero>(context);
}

}  // namespace foretrain
