// What DDP and ZeRO have in common: gradients collected in buckets as they become ready.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/strategies/gradient_strategy.h"

namespace foretrain {

struct BucketParameter {
  std::int32_t block = -1, parameter = -1;
  std::int64_t elements = 0;
};
struct Bucket {
  std::vector<BucketParameter> parameters;  // in the order in which they become ready
  std::int64_t elements = 0;
};

// Buckets of one stage, formed as PyTorch's Reducer forms them when it rebuilds them after the first
// iteration: in the order in which gradients become ready. Every model chunk has its own (a DDP instance
// per chunk, as in Megatron-LM); the first of a chunk has the smaller limit. With `separate_tied` a tied
// embedding of the first or last pipeline stage has a bucket of its own, so that its shards on the two
// stages match.
std::vector<Bucket> make_buckets(const StageContext& context, bool separate_tied);

class BucketedStrategy : public GradientStrategy {
 public:
  BucketedStrategy(const StageContext& context, bool separate_tied);

  void after(std::size_t position, InstructionId id, const BackwardList* list) override;
  std::vector<InstructionId> after_backward() override;

 protected:
  // Whether the backward of this step sends its buckets off.
  virtual bool synchronizes(const ComputeStep& step) const { return step.last_backward; }
  // The collective of a bucket; dependencies are set already.
  virtual void reduce(std::size_t bucket, std::int32_t micro_batch, InstructionDraft draft) = 0;
  // What follows the last collective on the compute stream (copies out); returns what to wait for.
  virtual std::vector<InstructionId> finish() { return last_collective_; }

  Bytes bytes_of(const Bucket& bucket) const;
  StageContext context_;
  std::vector<Bucket> buckets_;
  std::vector<InstructionId> last_collective_;  // the last one issued, or none

 private:
  struct Pending {
    std::size_t bucket;
    std::int32_t micro_batch;
  };
  void send_off(std::size_t bucket, std::int32_t micro_batch, InstructionId id, std::int32_t op);

  std::vector<std::vector<std::size_t>> ending_in_;  // by block: buckets whose last gradient it makes
  std::vector<Pending> pending_;                     // waiting for the end of the backward (overlap off)
  InstructionId last_backward_;
};

}  // namespace foretrain
