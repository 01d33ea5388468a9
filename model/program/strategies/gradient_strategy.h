// What data parallelism adds to the compute steps of one stage: which collectives are issued around which
// forward and backward, what memory holds parameters, gradients and optimizer state, and what share of the
// parameters a rank updates. One implementation per way of doing it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/program/block_lists.h"
#include "model/program/instruction_writer.h"
#include "model/program/stage.h"
#include "model/program/step_program.h"

namespace foretrain {

// The stage under construction. References outlive the strategy.
struct StageContext {
  const TransformerConfig& model;
  const TrainingSpec& training;
  const ParallelPlan& plan;
  const Mesh& mesh;
  BlockLists& lists;
  const Stage& stage;
  RankClass& rank_class;
  InstructionWriter& writer;

  DType parameter_type() const { return parameter_dtype(training.precision); }
};

// What one rank's optimizer goes over.
struct UpdateShare {
  std::int64_t elements = 0;
  std::int64_t tensors = 0;
};

class GradientStrategy {
 public:
  virtual ~GradientStrategy() = default;

  // Parameters, optimizer state and gradient storage that exist before the step.
  virtual void add_persistent_buffers() = 0;
  virtual GradientAllocation allocation() const = 0;
  virtual BackwardForm form_of(const ComputeStep& step) const = 0;
  // Before stage.steps[position] is issued; `draft` is its first instruction (a recompute or itself).
  virtual void before(std::size_t /*position*/, InstructionDraft& /*draft*/) {}
  // After it has been issued as `id`, with the backward list it runs (null for a forward).
  virtual void after(std::size_t /*position*/, InstructionId /*id*/, const BackwardList* /*list*/) {}
  // When all backwards have been issued. What the gradients are used for next waits for the ids returned.
  virtual std::vector<InstructionId> after_backward() { return {}; }
  virtual void after_optimizer(InstructionId /*id*/) {}
  virtual UpdateShare update() const = 0;
  // Mesh dimensions over which a rank's gradients are one shard of several.
  virtual MeshDims sharded_over() const { return {}; }
};

// fsdp > 1: FSDP (with dp > 1: HSDP); else dp > 1: DDP or ZeRO; else nothing is exchanged.
std::unique_ptr<GradientStrategy> make_gradient_strategy(const StageContext& context);

std::unique_ptr<GradientStrategy> make_replicated(const StageContext& context);
std::unique_ptr<GradientStrategy> make_ddp(const StageContext& context);
std::unique_ptr<GradientStrategy> make_zero(const StageContext& context);
std::unique_ptr<GradientStrategy> make_fsdp(const StageContext& context);

// Parameters of these blocks as the model's own tensors, equal ones of equal blocks in one buffer.
// `skip`: a parameter that another one stands for.
void add_parameter_buffers(const StageContext& context, const std::vector<std::int32_t>& blocks,
                           std::string_view skip = {});
// Optimizer state for `tensors` tensors of `elements` elements in all.
void add_optimizer_buffers(const StageContext& context, std::int64_t elements, std::int64_t tensors);
// The optimizer state of unsharded parameters, buffer by buffer as their parameters.
void add_replicated_optimizer_buffers(const StageContext& context);
// Elements and tensors of the stage's parameters on one rank.
UpdateShare replicated_share(const StageContext& context);

}  // namespace foretrain
