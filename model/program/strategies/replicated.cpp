// One replica: every gradient stays where it was made.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/ops/optimizer.h"
#include "model/program/strategies/gradient_strategy.h"

namespace foretrain {
namespace {

class Replicated : public GradientStrategy {
 public:
  explicit Replicated(const StageContext& context) : context_(context) {}

  void add_persistent_buffers() override {
    add_parameter_buffers(context_, context_.stage.blocks);
    if (context_.stage.runs_backward) add_replicated_optimizer_buffers(context_);
  }
  GradientAllocation allocation() const override { return GradientAllocation::on_completion; }
  BackwardForm form_of(const ComputeStep& step) const override {
    return BackwardForm{!step.first_backward, false, GradientTensor::none};
  }
  UpdateShare update() const override { return replicated_share(context_); }

 private:
  StageContext context_;
};

// Calls visit(parameter name without block, elements of one, number of equal blocks).
template <typename Visit>
void for_each_parameter(const StageContext& context, const std::vector<std::int32_t>& blocks, Visit visit) {
  for (const BlockKind kind : {BlockKind::embedding, BlockKind::layer, BlockKind::head}) {
    std::vector<std::int32_t> same;
    std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(same),
                 [&](std::int32_t block) { return block_kind(context.model, block) == kind; });
    if (same.empty()) continue;
    const std::vector<Parameter>& parameters = context.lists.parameters(same.front());
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::int64_t elements = context.lists.elements(same.front(), static_cast<std::int32_t>(p));
      std::string name = parameters[p].name;
      // "blocks.0.attn.qkv.weight" stands for all layers.
      if (kind == BlockKind::layer) name = name.substr(name.find('.', name.find('.') + 1) + 1);
      visit(name, elements, static_cast<std::int32_t>(same.size()));
    }
  }
}

}  // namespace

std::unique_ptr<GradientStrategy> make_replicated(const StageContext& context) {
  return std::make_unique<Replicated>(context);
}

std::unique_ptr<GradientStrategy> make_gradient_strategy(const StageContext& context) {
  if (context.plan.fsdp > 1) return make_fsdp(context);
  if (context.plan.dp > 1 && context.stage.runs_backward) {
    return context.plan.zero_stage > 0 ? make_zero(context) : make_ddp(context);
  }
  return make_replicated(context);
}

void add_parameter_buffers(const StageContext& context, const std::vector<std::int32_t>& blocks,
                           std::string_view skip) {
  const std::int64_t width = size_of(context.parameter_type());
  for_each_parameter(
      context, blocks, [&](const std::string& name, std::int64_t elements, std::int32_t count) {
        if (name == skip) return;
        context.writer.persistent(name, Bytes(elements * width * count), MemoryClass::parameters, count);
      });
}

void add_optimizer_buffers(const StageContext& context, std::int64_t elements, std::int64_t tensors) {
  const Bytes bytes = optimizer_state_bytes(context.training, elements, context.parameter_type());
  const std::int64_t states = elements > 0 ? bytes.count() / (4 * elements) : 0;
  context.writer.persistent("optimizer state", bytes, MemoryClass::optimizer,
                            static_cast<std::int32_t>(std::max<std::int64_t>(1, states * tensors)));
}

void add_replicated_optimizer_buffers(const StageContext& context) {
  for_each_parameter(
      context, context.stage.blocks, [&](const std::string& name, std::int64_t elements, std::int32_t count) {
        const Bytes one = optimizer_state_bytes(context.training, elements, context.parameter_type());
        const std::int64_t states = elements > 0 ? one.count() / (4 * elements) : 0;
        context.writer.persistent("optimizer state of " + name, one * count, MemoryClass::optimizer,
                                  static_cast<std::int32_t>(states) * count);
      });
}

UpdateShare replicated_share(const StageContext& context) {
  UpdateShare share;
  for_each_parameter(context, context.stage.blocks,
                     [&](const std::string&, std::int64_t elements, std::int32_t count) {
                       share.elements += elements * count;
                       if (elements > 0) share.tensors += count;
                     });
  return share;
}

}  // namespace foretrain
