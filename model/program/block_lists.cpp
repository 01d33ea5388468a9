#include "model/program/block_lists.h"

#include <algorithm>
#include <numeric>

namespace foretrain {
namespace {

Op gradient_op(const char* name, Bytes read, Bytes written) {
  Op op;
  op.kind = OpKind::memory_bound;
  op.role = OpRole::copy;
  op.name = name;
  op.read = read;
  op.written = written;
  return op;
}

}  // namespace

BlockLists::BlockLists(StepProgram& program) : program_(program) {
  const TransformerConfig& model = program.model;
  const ParallelPlan& plan = program.plan;
  tied_here_ = model.tied_head && plan.pp == 1;

  ExpansionContext context;
  context.model = model;
  // On different stages the tied weights are two tensors, whose gradients are exchanged at the step's end.
  context.model.tied_head = tied_here_;
  context.training = program.training;
  context.tp = plan.tp;
  context.tp_kind = plan.tp_kind;
  context.sequence_parallel = plan.sequence_parallel;

  const std::int64_t representative[] = {0, 1, model.layers + 1};
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    Kind& kind = kinds_[k];
    kind.parameters = block_parameters(model, representative[k]);
    for (const Parameter& parameter : kind.parameters) {
      const bool counted = !(tied_here_ && parameter.tied_to_embedding);
      kind.elements.push_back(counted ? local_elements(parameter, plan.tp, plan.tp_kind) : 0);
    }
    kind.expansion = expand(block_kind(model, representative[k]), context);
    kind.gradient_tensors.assign(kind.parameters.size(), -1);
    kind.tensor_table = static_cast<std::int32_t>(k);
    program.tensor_tables.push_back(kind.expansion.tensors);
  }
  if (tied_here_) find_tied_gradient(context);

  const std::int64_t width = size_of(parameter_dtype(program.training.precision));
  for (std::int64_t block = 0; block < block_count(model); ++block) {
    const Kind& kind = kinds_[kind_of(static_cast<std::int32_t>(block))];
    BlockParameters parameters;
    for (const Parameter& parameter : block_parameters(model, block))
      parameters.names.push_back(parameter.name);
    for (const std::int64_t count : kind.elements) parameters.gradient_bytes.push_back(Bytes(count * width));
    program.blocks.push_back(std::move(parameters));
  }
}

// expand() lets a tied head complete nothing; the op that makes its part of the gradient is the one that
// completes the weight of an untied head.
void BlockLists::find_tied_gradient(const ExpansionContext& context) {
  Kind& head = kinds_[2];
  const auto tied = std::find_if(head.parameters.begin(), head.parameters.end(),
                                 [](const Parameter& p) { return p.tied_to_embedding; });
  if (tied == head.parameters.end()) return;
  tied_parameter_ = static_cast<std::int32_t>(tied - head.parameters.begin());
  ExpansionContext untied = context;
  untied.model.tied_head = false;
  const BlockExpansion expansion = expand(BlockKind::head, untied);
  for (std::size_t i = 0; i < expansion.backward.size(); ++i) {
    const std::vector<std::int32_t>& completes = expansion.backward[i].completes;
    if (std::find(completes.begin(), completes.end(), tied_parameter_) != completes.end()) {
      tied_op_ = static_cast<std::int32_t>(i);
    }
  }
  if (tied_op_ < 0) return;
  const ParallelPlan& plan = program_.plan;
  const DType dtype = parameter_dtype(program_.training.precision);
  TensorTable& table = program_.tensor_tables[static_cast<std::size_t>(head.tensor_table)];
  table.push_back(Tensor{"gradient of " + tied->name,
                         Bytes(local_elements(*tied, plan.tp, plan.tp_kind) * size_of(dtype)), dtype,
                         MemoryClass::gradients});
  tied_gradient_ = {static_cast<std::int32_t>(block_count(program_.model)) - 1,
                    static_cast<std::int32_t>(table.size()) - 1};
}

std::size_t BlockLists::kind_of(std::int32_t block) const {
  return static_cast<std::size_t>(block_kind(program_.model, block));
}

const BlockExpansion& BlockLists::expansion(std::int32_t block) const {
  return kinds_[kind_of(block)].expansion;
}
const std::vector<Parameter>& BlockLists::parameters(std::int32_t block) const {
  return kinds_[kind_of(block)].parameters;
}
std::int64_t BlockLists::elements(std::int32_t block, std::int32_t parameter) const {
  return kinds_[kind_of(block)].elements[static_cast<std::size_t>(parameter)];
}
std::int64_t BlockLists::elements(std::int32_t block) const {
  const std::vector<std::int64_t>& counts = kinds_[kind_of(block)].elements;
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::int32_t BlockLists::add_list(std::vector<Op> ops) {
  if (ops.empty()) return -1;
  program_.op_lists.push_back(OpList{std::move(ops), -1});
  return static_cast<std::int32_t>(program_.op_lists.size()) - 1;
}

std::int32_t BlockLists::add_block_list(const Kind& kind, const std::vector<Op>& ops) {
  program_.op_lists.push_back(OpList{ops, kind.tensor_table});
  return static_cast<std::int32_t>(program_.op_lists.size()) - 1;
}

std::int32_t BlockLists::forward(std::int32_t block) {
  Kind& kind = kinds_[kind_of(block)];
  if (kind.forward < 0) kind.forward = add_block_list(kind, kind.expansion.forward);
  return kind.forward;
}

std::int32_t BlockLists::recompute(std::int32_t block) {
  Kind& kind = kinds_[kind_of(block)];
  if (kind.recompute < 0 && !kind.expansion.recompute.empty()) {
    kind.recompute = add_block_list(kind, kind.expansion.recompute);
  }
  return kind.recompute;
}

std::int32_t BlockLists::gradient_tensor(Kind& kind, std::int32_t parameter) {
  std::int32_t& index = kind.gradient_tensors[static_cast<std::size_t>(parameter)];
  if (index >= 0) return index;
  const DType dtype = parameter_dtype(program_.training.precision);
  TensorTable& table = program_.tensor_tables[static_cast<std::size_t>(kind.tensor_table)];
  table.push_back(Tensor{"gradient of " + kind.parameters[static_cast<std::size_t>(parameter)].name,
                         Bytes(kind.elements[static_cast<std::size_t>(parameter)] * size_of(dtype)), dtype,
                         MemoryClass::gradients});
  return index = static_cast<std::int32_t>(table.size()) - 1;
}

const BackwardList& BlockLists::backward(std::int32_t block, const BackwardForm& form) {
  Kind& kind = kinds_[kind_of(block)];
  const auto [entry, added] = kind.backwards.try_emplace(form);
  if (added) entry->second = write_backward(kind, form);
  return entry->second;
}

BackwardList BlockLists::write_backward(Kind& kind, const BackwardForm& form) {
  const std::int64_t width = size_of(parameter_dtype(program_.training.precision));
  const bool is_head = &kind == &kinds_[2];
  BackwardList list;
  std::vector<Op> ops;
  for (std::size_t i = 0; i < kind.expansion.backward.size(); ++i) {
    ops.push_back(kind.expansion.backward[i]);
    const std::size_t completing = ops.size() - 1;
    if (is_head && static_cast<std::int32_t>(i) == tied_op_) {
      ops[completing].allocates.push_back(tied_gradient_.tensor);
    }
    const std::vector<std::int32_t> completes = ops[completing].completes;
    for (const std::int32_t parameter : completes) {
      const Bytes bytes(kind.elements[static_cast<std::size_t>(parameter)] * width);
      const std::int32_t tensor = form.tensor == GradientTensor::none ? -1 : gradient_tensor(kind, parameter);
      if (tensor >= 0) ops[completing].allocates.push_back(tensor);
      if (form.accumulate) ops.push_back(gradient_op("gradient.accumulate", bytes * 2, bytes));
      if (form.copy_to_bucket) {
        ops.push_back(gradient_op("gradient.copy_to_bucket", bytes, bytes));
        if (form.tensor == GradientTensor::until_copy) ops.back().frees.push_back(tensor);
      }
      if (form.tensor == GradientTensor::survives) list.survivors.push_back(tensor);
      list.completions.push_back({parameter, static_cast<std::int32_t>(ops.size()) - 1});
    }
  }
  list.op_list = add_block_list(kind, ops);
  return list;
}

}  // namespace foretrain
