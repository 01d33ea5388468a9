// Invariants of tensors and gradients over random architectures, precisions, tensor parallelism and
// recomputation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "tests/model/ops/ledger.h"
#include "tests/model/ops/random_context.h"

namespace foretrain {
namespace {

// What is alive at the end of a block's lists must be exactly its output and the gradient of its input.
void expect_only_boundaries_alive(const Ledger& ledger, const BlockExpansion& block) {
  for (const auto& [tensor, bytes] : ledger.alive) {
    if (tensor != block.output && tensor != block.input_gradient) {
      RC_FAIL("left alive: " + block.tensors.at(static_cast<std::size_t>(tensor)).name);
    }
  }
  if (block.output >= 0) RC_ASSERT(ledger.alive.contains(block.output));
  if (block.input_gradient >= 0) RC_ASSERT(ledger.alive.contains(block.input_gradient));
}

RC_GTEST_PROP(Lifetimes, EveryTensorIsFreedOnceOverForwardRecomputeAndBackward, ()) {
  const ExpansionContext context = random_context();
  for (const BlockKind kind : kBlockKinds) {
    const BlockExpansion block = expand(kind, context);
    Ledger ledger;
    ledger.run(block.forward, block.tensors);
    ledger.run(block.recompute, block.tensors);
    ledger.run(block.backward, block.tensors);
    expect_only_boundaries_alive(ledger, block);
  }
}

RC_GTEST_PROP(Lifetimes, SplitBackwardFreesTheSameTensors, ()) {
  const ExpansionContext context = random_context();
  for (const BlockKind kind : kBlockKinds) {
    const BlockExpansion block = expand(kind, context);
    Ledger ledger;
    ledger.run(block.forward, block.tensors);
    ledger.run(block.recompute, block.tensors);
    ledger.run(block.backward_input, block.tensors);
    ledger.run(block.backward_weight, block.tensors);
    expect_only_boundaries_alive(ledger, block);
  }
}

RC_GTEST_PROP(Lifetimes, FullRecomputationKeepsNothingButTheOutput, ()) {
  ExpansionContext context = random_context();
  context.training.recompute = Recompute::full;
  const BlockExpansion block = expand(BlockKind::layer, context);
  Ledger ledger;
  ledger.run(block.forward, block.tensors);
  RC_ASSERT(ledger.alive.size() == 1u);
  RC_ASSERT(ledger.alive.contains(block.output));
}

RC_GTEST_PROP(Completes, EveryParameterOnceButATiedHead, ()) {
  const ExpansionContext context = random_context();
  for (const BlockKind kind : kBlockKinds) {
    const auto parameters = block_parameters(context.model, first_block(context.model, kind));
    const BlockExpansion block = expand(kind, context);
    std::map<std::int32_t, int> whole, split;
    for (const Op& op : block.backward) {
      for (const std::int32_t p : op.completes) ++whole[p];
    }
    for (const Op& op : block.backward_input) RC_ASSERT(op.completes.empty());
    for (const Op& op : block.backward_weight) {
      for (const std::int32_t p : op.completes) ++split[p];
    }
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const int expected = parameters[p].tied_to_embedding ? 0 : 1;
      if (whole[static_cast<std::int32_t>(p)] != expected) RC_FAIL("backward: " + parameters[p].name);
      if (split[static_cast<std::int32_t>(p)] != expected) RC_FAIL("weight part: " + parameters[p].name);
    }
  }
}

RC_GTEST_PROP(Ops, BytesAndFlopsAreNeverNegativeAndNamesAreThere, ()) {
  const ExpansionContext context = random_context();
  for (const BlockKind kind : kBlockKinds) {
    const BlockExpansion block = expand(kind, context);
    for (const auto* list : {&block.forward, &block.backward, &block.recompute}) {
      for (const Op& op : *list) {
        RC_ASSERT(op.read.count() >= 0);
        RC_ASSERT(op.written.count() >= 0);
        RC_ASSERT(op.flops.count() >= 0);
        RC_ASSERT(op.launches >= 1);
        RC_ASSERT(!op.name.empty());
        if (op.kind == OpKind::collective) RC_ASSERT(op.collective.bytes.count() > 0);
        if (op.kind == OpKind::matmul) RC_ASSERT(op.matmul.m > 0 && op.matmul.n > 0 && op.matmul.k > 0);
      }
    }
    for (const Tensor& tensor : block.tensors) RC_ASSERT(tensor.bytes.count() > 0);
  }
}

RC_GTEST_PROP(Ops, ExpansionIsDeterministic, ()) {
  const ExpansionContext context = random_context();
  const BlockExpansion a = expand(BlockKind::layer, context);
  const BlockExpansion b = expand(BlockKind::layer, context);
  RC_ASSERT(a.backward.size() == b.backward.size());
  for (std::size_t i = 0; i < a.backward.size(); ++i) {
    RC_ASSERT(a.backward[i].name == b.backward[i].name);
    RC_ASSERT(a.backward[i].frees == b.backward[i].frees);
  }
}

}  // namespace
}  // namespace foretrain
