// Records a block's forward op by op, as eager PyTorch issues it, and derives the backward by walking the
// record in reverse, as autograd does. Tensor lifetimes follow: a tensor that a backward op uses is saved,
// every other one is freed after its last use.
//
// One tape serves one block; not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/ops/expand.h"

namespace foretrain {

constexpr std::int32_t kNoTensor = -1;       // nothing
constexpr std::int32_t kForeignTensor = -2;  // exists, but belongs to the neighbouring block

// A differentiable value: its tensor and size.
struct Value {
  std::int32_t tensor = kNoTensor;
  std::int32_t id = -1;
  std::int64_t elements = 0;
  DType dtype = DType::fp32;
  Bytes bytes() const { return Bytes(elements * size_of(dtype)); }
};

class EagerTape {
 public:
  EagerTape(const ExpansionContext& context, std::vector<Parameter> parameters);

  Value input(std::int64_t elements, DType dtype);
  // A differentiable value that owns no tensor here (a parameter).
  Value untracked(std::int64_t elements, DType dtype);
  // A tensor without gradient (mask, statistics, cached cast).
  std::int32_t tensor(std::string name, std::int64_t elements, DType dtype,
                      MemoryClass memory_class = MemoryClass::activations);
  // A new differentiable value with a tensor of its own.
  Value value(std::string name, std::int64_t elements, DType dtype);
  // Appends an op to the list being written. `uses` and `makes` are tensor indices (-1 is ignored).
  void emit(Op op, std::vector<std::int32_t> uses, std::vector<std::int32_t> makes = {});
  // Registers what to emit when the backward reaches this point.
  void on_backward(std::function<void()> step);

  // In the backward: the gradient tensor of a value; kNoTensor when it received none.
  std::int32_t gradient(const Value& x) const;
  // In the backward: `tensor` is a gradient of x. A second one is added to the first by an op.
  void give_gradient(const Value& x, std::int32_t tensor);
  // A fresh tensor for the gradient of x.
  std::int32_t gradient_tensor(const Value& x);
  // In the backward: the op emitted last completes the gradient of the parameter (name without prefix).
  void completes(const std::string& parameter_suffix);
  // Element count of this rank's part of a parameter.
  std::int64_t local_elements(const std::string& parameter_suffix) const;

  // A local variable of the module's forward: not freed before the function returns.
  void hold(const Value& x) { held_.push_back(x.tensor); }
  void function_returns();

  // `gather` is what makes x's tensor once more in the backward, instead of saving it.
  void gather_again(const Value& x, std::function<std::int32_t()> gather);
  // In the backward: x's tensor, or the one that gather_again's function made (once).
  std::int32_t gathered_again(const Value& x);

  // Ops between begin and end are run again before their backward (recompute selective).
  void begin_recompute();
  void end_recompute();

  // Which of the two gradients the ops emitted now belong to (split backward).
  enum class Part { both, input, weight };
  void set_part(Part part) { part_ = part; }

  const ExpansionContext& context() const { return context_; }
  // Writes the lists. `output`: the block's result; its gradient is allocated by the next block.
  BlockExpansion finish(const Value& input, const Value& output, bool loss);

 private:
  struct Draft {
    Op op;
    std::vector<std::int32_t> uses, makes;
    Part part = Part::both;
    bool outside_region = true;  // of a backward op: its forward stands outside every recompute region
  };
  struct Step {
    std::function<void()> run;
    std::int32_t region = -1;
  };
  struct Region {
    std::size_t begin = 0, end = 0;  // range of forward_
  };
  std::size_t parameter_index(const std::string& suffix) const;
  void run_backward();
  void recompute_region(const Region& region);
  // The drafts as ops with allocations and frees; tensors for which kept is set outlive the list.
  static std::vector<Op> with_lifetimes(const std::vector<Draft>& drafts, const std::vector<bool>& kept);
  std::vector<bool> used_by(const std::vector<Draft>& drafts) const;

  ExpansionContext context_;
  std::vector<Parameter> parameters_;
  TensorTable tensors_;
  std::vector<Draft> forward_, backward_;
  std::vector<Step> steps_;
  std::vector<std::int32_t> gradients_;  // by value id
  std::vector<std::int32_t> held_;
  std::map<std::int32_t, std::function<std::int32_t()>> gathers_;  // by tensor
  std::map<std::int32_t, std::int32_t> gathered_;
  std::vector<Region> regions_;
  std::int32_t region_ = -1;  // the open region, or the one the backward is in
  bool in_backward_ = false;
  Part part_ = Part::both;
  std::int32_t values_ = 0;
};

}  // namespace foretrain
