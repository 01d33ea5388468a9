// The op lists of a program: every block kind is expanded once, equal blocks share the lists. Backwards come
// in forms that differ in what happens to a parameter's gradient once it is complete.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/ops/expand.h"
#include "model/program/step_program.h"

namespace foretrain {

// Where a gradient lives that Op::completes does not allocate by itself.
enum class GradientTensor : std::uint8_t {
  none,        // allocated by GradientAllocation::on_completion
  until_copy,  // a tensor of the list, freed when it has been copied into its bucket
  survives     // a tensor of the list that outlives it, freed by the instruction that flattens the shard unit
};
struct BackwardForm {
  bool accumulate = false;      // added to the gradient of earlier micro-batches
  bool copy_to_bucket = false;  // and copied (scaled by 1/dp) into the bucket, as DDP's reducer does
  GradientTensor tensor = GradientTensor::none;
  friend auto operator<=>(const BackwardForm&, const BackwardForm&) = default;
};

struct Completion {
  std::int32_t parameter = -1;  // of the block
  std::int32_t op = -1;         // after this op of the list its gradient is where it belongs
};
struct BackwardList {
  std::int32_t op_list = -1;
  std::vector<Completion> completions;  // in order; without a tied head's weight
  std::vector<std::int32_t> survivors;  // gradient tensors that outlive the list
};

class BlockLists {
 public:
  // Fills program.blocks; op lists and tensor tables are added to the program as they are asked for.
  explicit BlockLists(StepProgram& program);

  std::int32_t forward(std::int32_t block);
  std::int32_t recompute(std::int32_t block);  // -1: nothing to recompute
  const BackwardList& backward(std::int32_t block, const BackwardForm& form);

  const BlockExpansion& expansion(std::int32_t block) const;
  const std::vector<Parameter>& parameters(std::int32_t block) const;
  // This rank's elements of a parameter; 0 for a head that shares the embedding of its own stage.
  std::int64_t elements(std::int32_t block, std::int32_t parameter) const;
  std::int64_t elements(std::int32_t block) const;
  // Embedding and head are one parameter on one stage.
  bool tied_here() const { return tied_here_; }
  // The head's part of the tied gradient, freed by the embedding's backward; {-1, -1} when there is none.
  TensorRef tied_gradient() const { return tied_gradient_; }

  std::int32_t add_list(std::vector<Op> ops);  // of an instruction that belongs to no block

 private:
  struct Kind {
    BlockExpansion expansion;
    std::vector<Parameter> parameters;
    std::vector<std::int64_t> elements;
    std::int32_t tensor_table = -1;
    std::int32_t forward = -1, recompute = -1;
    std::vector<std::int32_t> gradient_tensors;  // by parameter; -1 until used
    std::map<BackwardForm, BackwardList> backwards;
  };
  std::size_t kind_of(std::int32_t block) const;
  std::int32_t add_block_list(const Kind& kind, const std::vector<Op>& ops);
  std::int32_t gradient_tensor(Kind& kind, std::int32_t parameter);
  BackwardList write_backward(Kind& kind, const BackwardForm& form);
  void find_tied_gradient(const ExpansionContext& context);

  StepProgram& program_;
  std::array<Kind, 3> kinds_;
  bool tied_here_ = false;
  std::int32_t tied_op_ = -1, tied_parameter_ = -1;
  TensorRef tied_gradient_;
};

}  // namespace foretrain
