#include "model/program/strategies/bucketed.h"

#include <algorithm>
#include <utility>

#include "model/program/strategies/gradient_buckets.h"

namespace foretrain {

std::vector<Bucket> make_buckets(const StageContext& context, bool separate_tied) {
  const std::int64_t width = size_of(context.parameter_type());
  std::vector<Bucket> buckets;
  // Gradients become ready in the order of the chunk's last backward; chunks follow one another.
  std::vector<BucketParameter> ready;
  std::vector<Bytes> sizes;
  const auto close_group = [&](Bytes first) {
    for (const std::vector<std::size_t>& members : assign_buckets(sizes, first, context.plan.ddp.bucket)) {
      Bucket bucket;
      for (const std::size_t i : members) {
        bucket.parameters.push_back(ready[i]);
        bucket.elements += ready[i].elements;
      }
      buckets.push_back(std::move(bucket));
    }
    ready.clear();
    sizes.clear();
  };
  for (const ComputeStep& step : context.stage.steps) {
    if (step.forward || !step.last_backward) continue;
    const std::vector<Parameter>& parameters = context.lists.parameters(step.block);
    const Bytes first = context.plan.ddp.first_bucket;
    for (const Op& op : context.lists.expansion(step.block).backward) {
      for (const std::int32_t parameter : op.completes) {
        const std::int64_t elements = context.lists.elements(step.block, parameter);
        const std::string& name = parameters[static_cast<std::size_t>(parameter)].name;
        const bool alone = separate_tied && context.model.tied_head && context.stage.count > 1 &&
                           (name == "embedding.token.weight" || name == "head.lm_head.weight");
        if (alone && !ready.empty()) close_group(first);
        ready.push_back({step.block, parameter, elements});
        sizes.push_back(Bytes(elements * width));
        if (alone) close_group(first);
      }
    }
    if (step.last_of_task) close_group(first);
  }
  return buckets;
}

BucketedStrategy::BucketedStrategy(const StageContext& context, bool separate_tied)
    : context_(context), buckets_(make_buckets(context, separate_tied)) {
  ending_in_.resize(static_cast<std::size_t>(block_count(context.model)));
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    ending_in_[static_cast<std::size_t>(buckets_[b].parameters.back().block)].push_back(b);
  }
}

Bytes BucketedStrategy::bytes_of(const Bucket& bucket) const {
  return Bytes(bucket.elements * size_of(context_.parameter_type()));
}

void BucketedStrategy::send_off(std::size_t bucket, std::int32_t micro_batch, InstructionId id,
                                std::int32_t op) {
  InstructionDraft draft(InstructionKind::all_reduce_grads, StreamKind::data_parallel);
  draft.instruction.unit = static_cast<std::int32_t>(bucket);
  draft.instruction.group = mesh_dims(MeshDim::dp);
  draft.instruction.dtype = context_.parameter_type();
  draft.after(id, op);
  reduce(bucket, micro_batch, std::move(draft));
}

void BucketedStrategy::after(std::size_t position, InstructionId id, const BackwardList* list) {
  const ComputeStep& step = context_.stage.steps[position];
  if (step.forward || list == nullptr) return;
  last_backward_ = id;
  if (!synchronizes(step)) return;
  for (const std::size_t bucket : ending_in_[static_cast<std::size_t>(step.block)]) {
    if (!context_.plan.ddp.overlap) {
      pending_.push_back({bucket, step.micro_batch});
      continue;
    }
    const BucketParameter& last = buckets_[bucket].parameters.back();
    const auto done = std::find_if(list->completions.begin(), list->completions.end(),
                                   [&](const Completion& c) { return c.parameter == last.parameter; });
    send_off(bucket, step.micro_batch, id, done == list->completions.end() ? -1 : done->op);
  }
}

std::vector<InstructionId> BucketedStrategy::after_backward() {
  for (const Pending& pending : pending_) send_off(pending.bucket, pending.micro_batch, last_backward_, -1);
  pending_.clear();
  return finish();
}

}  // namespace foretrain
