// Transfers between pipeline stages: activations forward, gradients backward, and the gradient of a tied
// embedding between the first and the last stage.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/strategies/gradient_strategy.h"

namespace foretrain {

// Sends follow the task that makes the tensor; receives are posted one task ahead (sequential: just before
// their task), so that a transfer can overlap with the compute before it and at most one tensor waits.
class PipelineTransfers {
 public:
  explicit PipelineTransfers(const StageContext& context);

  // Before each task is issued; `last` is the compute instruction issued last.
  void before_task(std::size_t task, InstructionId last);
  // Adds what the first instruction of a task waits for.
  void add_waits(const ComputeStep& step, InstructionDraft& draft);
  // Adds the received tensors that a forward or backward frees at its end.
  void add_frees(const ComputeStep& step, InstructionDraft& draft);
  // After the last instruction of a task.
  void after_task(const ComputeStep& step, InstructionId last);

 private:
  struct Received {
    InstructionId recv;
    std::int32_t buffer = -1;
  };
  bool receives(const ScheduledTask& task) const;
  bool sends(const ScheduledTask& task) const;
  void receive(std::size_t task, InstructionId after);
  Received& received(bool forward, std::int32_t chunk, std::int32_t micro_batch);

  StageContext context_;
  std::vector<Received> received_;
};

// The gradient of a tied embedding that lives on two stages: both send theirs and add what they receive,
// which moves the same bytes as a two-rank all-reduce (Megatron-LM's embedding group). `sharded_over`: each
// rank exchanges its shard. Nothing happens on other stages. `after`: what the gradients wait for besides the
// compute stream.
void exchange_tied_gradient(const StageContext& context, MeshDims sharded_over,
                            const std::vector<InstructionId>& after);

}  // namespace foretrain
