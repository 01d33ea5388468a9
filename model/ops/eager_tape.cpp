#include "model/ops/eager_tape.h"

#include <cassert>
#include <utility>

namespace foretrain {

EagerTape::EagerTape(const ExpansionContext& context, std::vector<Parameter> parameters)
    : context_(context), parameters_(std::move(parameters)) {}

Value EagerTape::input(std::int64_t elements, DType dtype) {
  gradients_.push_back(kNoTensor);
  return Value{kForeignTensor, values_++, elements, dtype};
}

Value EagerTape::untracked(std::int64_t elements, DType dtype) {
  gradients_.push_back(kNoTensor);
  return Value{kNoTensor, values_++, elements, dtype};
}

std::int32_t EagerTape::tensor(std::string name, std::int64_t elements, DType dtype,
                               MemoryClass memory_class) {
  tensors_.push_back(Tensor{std::move(name), Bytes(elements * size_of(dtype)), dtype, memory_class});
  return static_cast<std::int32_t>(tensors_.size()) - 1;
}

Value EagerTape::value(std::string name, std::int64_t elements, DType dtype) {
  gradients_.push_back(kNoTensor);
  const std::int32_t index = tensor(std::move(name), elements, dtype);
  return Value{index, values_++, elements, dtype};
}

void EagerTape::emit(Op op, std::vector<std::int32_t> uses, std::vector<std::int32_t> makes) {
  Draft draft;
  draft.op = std::move(op);
  draft.uses = std::move(uses);
  draft.makes = std::move(makes);
  draft.part = part_;
  draft.outside_region = region_ < 0;
  (in_backward_ ? backward_ : forward_).push_back(std::move(draft));
}

void EagerTape::on_backward(std::function<void()> step) { steps_.push_back(Step{std::move(step), region_}); }

std::int32_t EagerTape::gradient(const Value& x) const { return gradients_[static_cast<std::size_t>(x.id)]; }

std::int32_t EagerTape::gradient_tensor(const Value& x) { return tensor("gradient", x.elements, x.dtype); }

void EagerTape::give_gradient(const Value& x, std::int32_t tensor_index) {
  std::int32_t& slot = gradients_[static_cast<std::size_t>(x.id)];
  if (slot == kNoTensor) {
    slot = tensor_index;
    return;
  }
  // The second gradient of a value that was used twice: autograd adds them.
  Op op;
  op.role = OpRole::residual;
  op.name = "gradient_add";
  op.read = x.bytes() * 2;
  op.written = x.bytes();
  op.flops = Flops(static_cast<double>(x.elements));
  const std::int32_t sum = gradient_tensor(x);
  emit(std::move(op), {slot, tensor_index}, {sum});
  slot = sum;
}

std::size_t EagerTape::parameter_index(const std::string& suffix) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name.ends_with("." + suffix)) return i;
  }
  assert(false && "unknown parameter");
  return 0;
}

void EagerTape::completes(const std::string& suffix) {
  backward_.back().op.completes.push_back(static_cast<std::int32_t>(parameter_index(suffix)));
}

std::int64_t EagerTape::local_elements(const std::string& suffix) const {
  return foretrain::local_elements(parameters_[parameter_index(suffix)], context_.tp, context_.tp_kind);
}

void EagerTape::function_returns() {
  std::vector<std::int32_t>& uses = forward_.back().uses;
  uses.insert(uses.end(), held_.begin(), held_.end());
  held_.clear();
}

void EagerTape::gather_again(const Value& x, std::function<std::int32_t()> gather) {
  gathers_[x.tensor] = std::move(gather);
}

std::int32_t EagerTape::gathered_again(const Value& x) {
  const auto gather = gathers_.find(x.tensor);
  if (gather == gathers_.end()) return x.tensor;
  const auto [entry, first] = gathered_.emplace(x.tensor, kNoTensor);
  if (first) {
    const Part part = std::exchange(part_, Part::weight);
    entry->second = gather->second();
    part_ = part;
  }
  return entry->second;
}

void EagerTape::begin_recompute() {
  region_ = static_cast<std::int32_t>(regions_.size());
  regions_.push_back(Region{forward_.size(), forward_.size()});
}

void EagerTape::end_recompute() {
  regions_.back().end = forward_.size();
  region_ = -1;
}

void EagerTape::recompute_region(const Region& region) {
  region_ = 0;
  for (std::size_t i = region.begin; i < region.end; ++i) {
    Draft again = forward_[i];
    again.outside_region = false;
    again.part = Part::both;
    again.op.name += ".recomputed";
    backward_.push_back(std::move(again));
  }
}

void EagerTape::run_backward() {
  in_backward_ = true;
  std::int32_t inside = -1;
  for (std::size_t i = steps_.size(); i-- > 0;) {
    if (steps_[i].region >= 0 && steps_[i].region != inside) {
      recompute_region(regions_[static_cast<std::size_t>(steps_[i].region)]);
    }
    inside = steps_[i].region;
    region_ = inside;
    part_ = Part::both;
    steps_[i].run();
  }
  region_ = -1;
}

std::vector<bool> EagerTape::used_by(const std::vector<Draft>& drafts) const {
  std::vector<bool> used(tensors_.size(), false);
  for (const Draft& draft : drafts) {
    for (const std::int32_t t : draft.uses) {
      if (t >= 0) used[static_cast<std::size_t>(t)] = true;
    }
  }
  return used;
}

std::vector<Op> EagerTape::with_lifetimes(const std::vector<Draft>& drafts, const std::vector<bool>& kept) {
  std::vector<std::int64_t> last(kept.size(), -1);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    for (const std::int32_t t : drafts[i].uses) {
      if (t >= 0) last[static_cast<std::size_t>(t)] = static_cast<std::int64_t>(i);
    }
    for (const std::int32_t t : drafts[i].makes)
      last[static_cast<std::size_t>(t)] = static_cast<std::int64_t>(i);
  }
  std::vector<Op> ops;
  ops.reserve(drafts.size());
  for (const Draft& draft : drafts) {
    ops.push_back(draft.op);
    ops.back().allocates = draft.makes;
  }
  for (std::size_t t = 0; t < kept.size(); ++t) {
    if (last[t] >= 0 && !kept[t]) {
      ops[static_cast<std::size_t>(last[t])].frees.push_back(static_cast<std::int32_t>(t));
    }
  }
  return ops;
}

BlockExpansion EagerTape::finish(const Value& input, const Value& output, bool loss) {
  if (!loss) gradients_[static_cast<std::size_t>(output.id)] = kForeignTensor;
  run_backward();
  BlockExpansion result;
  result.input_gradient = input.id >= 0 ? gradient(input) : kNoTensor;
  result.output = loss ? kNoTensor : output.tensor;
  if (!loss) {
    result.boundary_bytes = output.bytes();
    result.boundary_dtype = output.dtype;
  }

  const bool full = context_.training.recompute == Recompute::full && !loss;
  // What a recomputed region makes again is not kept by the forward, unless an op outside needs it.
  std::vector<Draft> outside;
  for (const Draft& draft : backward_) {
    if (draft.outside_region) outside.push_back(draft);
  }
  std::vector<bool> made_in_region(tensors_.size(), false);
  for (const Region& region : regions_) {
    for (std::size_t i = region.begin; i < region.end; ++i) {
      for (const std::int32_t t : forward_[i].makes) made_in_region[static_cast<std::size_t>(t)] = true;
    }
  }
  std::vector<bool> saved = used_by(backward_);
  std::vector<bool> made_forward(tensors_.size(), false);
  for (const Draft& draft : forward_) {
    for (const std::int32_t t : draft.makes) made_forward[static_cast<std::size_t>(t)] = true;
  }
  const std::vector<bool> used_outside = used_by(outside);
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    if (made_in_region[t]) saved[t] = used_outside[t];
    saved[t] = saved[t] && made_forward[t];
  }
  const auto resize_all = [&](std::vector<bool>& flags) { flags.resize(tensors_.size(), false); };
  // A recomputed tensor that the forward has kept lives under another name for a moment.
  const auto rename_kept = [&](std::vector<Draft>& drafts, const std::vector<bool>& alive,
                               bool only_regions) {
    for (Draft& draft : drafts) {
      if (only_regions && draft.outside_region) continue;
      for (std::int32_t& made : draft.makes) {
        if (static_cast<std::size_t>(made) >= alive.size() || !alive[static_cast<std::size_t>(made)])
          continue;
        Tensor copy = tensors_[static_cast<std::size_t>(made)];
        copy.name += ".recomputed";
        tensors_.push_back(std::move(copy));
        made = static_cast<std::int32_t>(tensors_.size()) - 1;
      }
    }
  };
  std::vector<bool> alive_after_forward = full ? std::vector<bool>(tensors_.size(), false) : saved;
  if (result.output >= 0) alive_after_forward[static_cast<std::size_t>(result.output)] = true;
  if (!regions_.empty() && !full) rename_kept(backward_, alive_after_forward, true);
  std::vector<Draft> again;
  if (full) {
    again = forward_;
    std::vector<bool> output_only(tensors_.size(), false);
    if (result.output >= 0) output_only[static_cast<std::size_t>(result.output)] = true;
    rename_kept(again, output_only, false);
  }
  resize_all(saved);
  resize_all(alive_after_forward);
  result.forward = with_lifetimes(forward_, alive_after_forward);
  if (full) result.recompute = with_lifetimes(again, saved);

  std::vector<bool> stays(tensors_.size(), false);
  if (result.input_gradient >= 0) stays[static_cast<std::size_t>(result.input_gradient)] = true;
  if (result.output >= 0) stays[static_cast<std::size_t>(result.output)] = true;
  result.backward = with_lifetimes(backward_, stays);

  std::vector<Draft> input_part, weight_part;
  for (const Draft& draft : backward_)
    (draft.part == Part::weight ? weight_part : input_part).push_back(draft);
  std::vector<bool> until_weights = used_by(weight_part);
  resize_all(until_weights);
  for (const Draft& draft : weight_part) {  // made by the weight part itself
    for (const std::int32_t t : draft.makes) until_weights[static_cast<std::size_t>(t)] = false;
  }
  for (std::size_t t = 0; t < tensors_.size(); ++t) until_weights[t] = until_weights[t] || stays[t];
  result.backward_input = with_lifetimes(input_part, until_weights);
  result.backward_weight = with_lifetimes(weight_part, stays);
  result.tensors = tensors_;
  return result;
}

}  // namespace foretrain
