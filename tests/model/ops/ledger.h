// What is alive while the op lists of a whole model run one after another on one rank, for one micro-batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/ops/expand.h"

namespace foretrain {

struct Ledger {
  std::map<std::int32_t, std::int64_t> alive;  // by tensor, of one block
  std::int64_t bytes = 0, peak = 0;

  // Throws where a tensor is allocated twice or freed when it is not there.
  void run(const std::vector<Op>& ops, const TensorTable& tensors) {
    for (const Op& op : ops) {
      for (const std::int32_t t : op.allocates) {
        const std::int64_t size = tensors.at(static_cast<std::size_t>(t)).bytes.count();
        if (!alive.emplace(t, size).second) throw std::runtime_error(op.name + " allocates twice");
        bytes += size;
      }
      peak = std::max(peak, bytes);
      for (const std::int32_t t : op.frees) {
        const auto it = alive.find(t);
        if (it == alive.end()) throw std::runtime_error(op.name + " frees what is not there");
        bytes -= it->second;
        alive.erase(it);
      }
    }
  }
  void free(std::int32_t t) {
    if (t < 0 || !alive.contains(t)) return;
    bytes -= alive.at(t);
    alive.erase(t);
  }
};

struct ModelMemory {
  std::int64_t peak_of_forward = 0;
  std::int64_t after_forward = 0;
  std::int64_t peak_of_backward = 0;  // without the gradients of parameters
};

// Bytes of activations through forward and backward of every block. A block's output is freed after the
// backward of the block that uses it, its gradient after the backward of the block itself.
inline ModelMemory run_model(const ExpansionContext& context) {
  const std::int64_t blocks = block_count(context.model);
  std::vector<BlockExpansion> expansions;
  for (const BlockKind kind : {BlockKind::embedding, BlockKind::layer, BlockKind::head}) {
    expansions.push_back(expand(kind, context));
  }
  const auto of = [&](std::int64_t block) -> const BlockExpansion& {
    return expansions[static_cast<std::size_t>(block_kind(context.model, block))];
  };
  std::vector<Ledger> ledgers(static_cast<std::size_t>(blocks));
  const auto total = [&] {
    std::int64_t sum = 0;
    for (const Ledger& ledger : ledgers) sum += ledger.bytes;
    return sum;
  };
  ModelMemory memory;
  for (std::int64_t b = 0; b < blocks; ++b) {
    Ledger& ledger = ledgers[static_cast<std::size_t>(b)];
    const std::int64_t others = total();
    ledger.run(of(b).forward, of(b).tensors);
    memory.peak_of_forward = std::max(memory.peak_of_forward, others + ledger.peak);
  }
  memory.after_forward = total();
  for (std::int64_t b = blocks; b-- > 0;) {
    Ledger& ledger = ledgers[static_cast<std::size_t>(b)];
    const std::int64_t others = total() - ledger.bytes;
    ledger.peak = 0;
    ledger.run(of(b).recompute, of(b).tensors);
    ledger.run(of(b).backward, of(b).tensors);
    memory.peak_of_backward = std::max(memory.peak_of_backward, others + ledger.peak);
    if (b > 0) ledgers[static_cast<std::size_t>(b - 1)].free(of(b - 1).output);
    if (b + 1 < blocks) ledgers[static_cast<std::size_t>(b + 1)].free(of(b + 1).input_gradient);
  }
  return memory;
}

}  // namespace foretrain
