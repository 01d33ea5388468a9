// DistributedDataParallel: every replica has all gradients, averaged bucket by bucket with all-reduces that
// start from hooks inside the last micro-batch's backward (Li et al. 2020; torch reducer.cpp).
//
// After zero_grad(set_to_none) autograd makes a fresh gradient, which the reducer copies into its bucket with
// the factor 1/dp. With gradient_as_bucket_view the gradient becomes a view of the bucket; without, it is
// copied back after the all-reduce. Micro-batches before the last run under no_sync: they accumulate in the
// gradients and leave the buckets alone.
#include <fmt/format.h>

#include "model/program/strategies/bucketed.h"

namespace foretrain {
namespace {

class Ddp : public BucketedStrategy {
 public:
  explicit Ddp(const StageContext& context) : BucketedStrategy(context, false) {}

  void add_persistent_buffers() override {
    add_parameter_buffers(context_, context_.stage.blocks);
    add_replicated_optimizer_buffers(context_);
    const bool views = context_.plan.ddp.gradient_as_bucket_view;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      context_.writer.persistent(fmt::format("bucket {}", b), bytes_of(buckets_[b]),
                                 views ? MemoryClass::gradients : MemoryClass::communication);
    }
  }

  GradientAllocation allocation() const override {
    return views_only() ? GradientAllocation::preallocated : GradientAllocation::on_completion;
  }

  BackwardForm form_of(const ComputeStep& step) const override {
    BackwardForm form;
    form.accumulate = !step.first_backward;
    form.copy_to_bucket = step.last_backward;
    form.tensor = views_only() ? GradientTensor::until_copy : GradientTensor::none;
    return form;
  }

  UpdateShare update() const override { return replicated_share(context_); }

 protected:
  void reduce(std::size_t bucket, std::int32_t /*micro_batch*/, InstructionDraft draft) override {
    draft.instruction.payload = bytes_of(buckets_[bucket]);
    last_collective_ = {context_.writer.add(draft)};
    reduced_.push_back({bucket, last_collective_.front()});
  }

  std::vector<InstructionId> finish() override {
    if (context_.plan.ddp.gradient_as_bucket_view) return last_collective_;
    for (const auto& [bucket, collective] : reduced_) {
      Op op;
      op.role = OpRole::copy;
      op.name = "gradient.copy_from_bucket";
      op.read = op.written = bytes_of(buckets_[bucket]);
      op.launches = static_cast<int>(buckets_[bucket].parameters.size());
      InstructionDraft copy(InstructionKind::copy_gradients, StreamKind::compute);
      copy.instruction.unit = static_cast<std::int32_t>(bucket);
      copy.instruction.op_list = context_.lists.add_list({op});
      copy.after(collective);
      context_.writer.add(copy);
    }
    return {};  // the copies are on the compute stream, as is what follows
  }

 private:
  struct Reduced {
    std::size_t bucket;
    InstructionId collective;
  };
  // Gradients exist outside the buckets only for a moment.
  bool views_only() const {
    return context_.plan.ddp.gradient_as_bucket_view && context_.training.micro_batches == 1;
  }
  std::vector<Reduced> reduced_;
};

}  // namespace

std::unique_ptr<GradientStrategy> make_ddp(const StageContext& context) {
  return std::make_unique<Ddp>(context);
}

}  // namespace foretrain
