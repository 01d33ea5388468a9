// The parallel plan: mesh sizes and how each dimension works. Any combination of the dimensions is
// allowed; check() says which values contradict the model, the training set-up or one another.
#pragma once

#include <cstdint>
#include <string>

#include "model/arch/transformer.h"
#include "model/base/error.h"
#include "model/base/units.h"
#include "model/plan/mesh.h"
#include "model/plan/training.h"

namespace foretrain {

enum class FsdpUnit : std::uint8_t { whole_model, block };
enum class FsdpSharding : std::uint8_t { full_shard, shard_grad_op };
// column_gather: every nn.Linear but lm_head split by output column, output all_gathered, input
// gradient all_reduced, all ranks see the same batch (the reference workload).
// megatron: column then row, one all_reduce per half block and direction (or all_gather +
// reduce_scatter with sequence_parallel), vocabulary-parallel embedding and loss.
enum class TensorParallelKind : std::uint8_t { column_gather, megatron };
enum class PipelineSchedule : std::uint8_t { sequential, gpipe, one_f_one_b, interleaved };

struct DdpOptions {
  Bytes bucket = kMiB * 25;
  Bytes first_bucket = kMiB;
  bool overlap = true;                  // false: all buckets after the backward
  bool gradient_as_bucket_view = true;  // false: gradients are copied into and out of the buckets
  // PyTorch's default is true: module buffers (causal masks) are broadcast over dp before every forward.
  bool broadcast_buffers = true;
};

struct FsdpOptions {
  FsdpUnit unit = FsdpUnit::block;
  FsdpSharding sharding = FsdpSharding::full_shard;
  bool prefetch_forward = true;
  bool prefetch_backward = true;
  DType parameter_payload = DType::fp32;  // dtype of the all-gathers (fp32 also under AMP unless set)
  DType gradient_payload = DType::fp32;   // dtype of the reduce-scatters
};

struct ParallelPlan {
  std::int32_t dp = 1;    // replicas; gradients all-reduced over dp
  std::int32_t fsdp = 1;  // shards of parameters, gradients and optimizer state
  std::int32_t tp = 1;
  std::int32_t pp = 1;
  std::int32_t zero_stage = 0;  // 0: DDP over dp; 1: optimizer state sharded; 2: and gradients
  DdpOptions ddp;
  FsdpOptions fsdp_options;
  TensorParallelKind tp_kind = TensorParallelKind::megatron;
  bool sequence_parallel = false;  // megatron only
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int32_t virtual_stages = 1;  // model chunks per rank (interleaved only)
  // The faulty step of the reference table: ranks other than the last run no backward and own no
  // gradients or optimizer state. Flagged in every report.
  bool pp_forward_only_ranks = false;

  Mesh mesh() const { return Mesh{{pp, dp, fsdp, tp}}; }
  std::int32_t world() const { return mesh().world(); }
};

// Every contradiction between plan, model and training set-up (tp not dividing heads, pp > layers,
// interleaved without micro_batches divisible by pp ...), each with the dotted path of the field.
Errors check(const ParallelPlan& plan, const TransformerConfig& model, const TrainingSpec& training);

// "DDP x4", "FSDP x8 per block", "TP8 (megatron, sequence parallel) x PP4 1F1B x DP2".
std::string describe(const ParallelPlan& plan);

}  // namespace foretrain
