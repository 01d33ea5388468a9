// The sections training, parallel, cost and run.
#include "model/scenario/fields.h"

namespace foretrain {
namespace {

constexpr EnumName<Precision> kPrecisions[] = {{"fp32", Precision::fp32},
                                               {"tf32", Precision::tf32},
                                               {"fp16_amp", Precision::fp16_amp},
                                               {"bf16_amp", Precision::bf16_amp},
                                               {"bf16", Precision::bf16}};
constexpr EnumName<AttentionKernel> kAttention[] = {{"eager", AttentionKernel::eager},
                                                    {"flash", AttentionKernel::flash}};
constexpr EnumName<Optimizer> kOptimizers[] = {{"adamw_foreach", Optimizer::adamw_foreach},
                                               {"adamw_fused", Optimizer::adamw_fused},
                                               {"sgd", Optimizer::sgd}};
constexpr EnumName<Recompute> kRecompute[] = {
    {"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}};
constexpr EnumName<FsdpUnit> kUnits[] = {{"whole_model", FsdpUnit::whole_model}, {"block", FsdpUnit::block}};
constexpr EnumName<FsdpSharding> kSharding[] = {{"full_shard", FsdpSharding::full_shard},
                                                {"shard_grad_op", FsdpSharding::shard_grad_op}};
constexpr EnumName<DType> kPayloads[] = {{"fp32", DType::fp32}, {"fp16", DType::fp16}, {"bf16", DType::bf16}};
constexpr EnumName<TensorParallelKind> kTensorParallel[] = {
    {"column_gather", TensorParallelKind::column_gather}, {"megatron", TensorParallelKind::megatron}};
constexpr EnumName<PipelineSchedule> kSchedules[] = {{"sequential", PipelineSchedule::sequential},
                                                     {"gpipe", PipelineSchedule::gpipe},
                                                     {"1f1b", PipelineSchedule::one_f_one_b},
                                                     {"interleaved", PipelineSchedule::interleaved}};

using T = TrainingSpec;
constexpr Field<TrainingSpec> kTraining[] = {
    {"micro_batch_size", "whole number from 1", "sequences per micro-batch and data-parallel rank",
     Bounded<&T::micro_batch_size, 1, 1 << 20>::read},
    {"micro_batches", "whole number from 1",
     "micro-batches per step and data-parallel rank: gradient accumulation, or what fills the pipeline",
     Bounded<&T::micro_batches, 1, 4096>::read},
    {"sequence_length", "whole number from 1", "tokens per sequence",
     Bounded<&T::sequence_length, 1, 1 << 24>::read},
    {"precision", "fp32, tf32, fp16_amp, bf16_amp or bf16", "arithmetic of the step; *_amp is torch.autocast",
     Choice<&T::precision, kPrecisions>::read},
    {"attention", "eager or flash", "eager materialises the scores; flash does not",
     Choice<&T::attention, kAttention>::read},
    {"optimizer", "adamw_foreach, adamw_fused or sgd", "the optimizer and how its kernels are issued",
     Choice<&T::optimizer, kOptimizers>::read},
    {"recompute", "none, selective or full", "activations computed again in the backward instead of kept",
     Choice<&T::recompute, kRecompute>::read},
    {"dropout", "true or false", "false takes every dropout rate of the model as zero",
     Plain<&T::dropout>::read},
    {"clip_gradients", "true or false", "clip by the global norm", Plain<&T::clip_gradients>::read},
    {"log_loss_every_step", "true or false", "loss.item() every step: the host waits for the step's end",
     Plain<&T::log_loss_every_step>::read},
};

using D = DdpOptions;
constexpr Field<DdpOptions> kDdp[] = {
    {"bucket", "size such as \"25 MiB\"", "capacity of a gradient bucket", Plain<&D::bucket>::read},
    {"first_bucket", "size such as \"1 MiB\"", "capacity of the bucket that is ready first",
     Plain<&D::first_bucket>::read},
    {"overlap", "true or false", "start a bucket's all-reduce when its last gradient is ready",
     Plain<&D::overlap>::read},
    {"broadcast_buffers", "true or false",
     "broadcast the model's buffers (mask buffers) before every forward, as PyTorch's DDP does by default",
     Plain<&D::broadcast_buffers>::read},
    {"gradient_as_bucket_view", "true or false", "gradients live in the buckets; false copies in and out",
     Plain<&D::gradient_as_bucket_view>::read},
};

using S = FsdpOptions;
constexpr Field<FsdpOptions> kFsdp[] = {
    {"unit", "whole_model or block", "what is gathered at once", Choice<&S::unit, kUnits>::read},
    {"sharding", "full_shard or shard_grad_op",
     "shard_grad_op keeps parameters gathered between forward and backward",
     Choice<&S::sharding, kSharding>::read},
    {"prefetch_forward", "true or false", "gather the next unit while this one computes",
     Plain<&S::prefetch_forward>::read},
    {"prefetch_backward", "true or false", "the same in the backward", Plain<&S::prefetch_backward>::read},
    {"parameter_payload", "fp32, fp16 or bf16", "dtype of the all-gathers",
     Choice<&S::parameter_payload, kPayloads>::read},
    {"gradient_payload", "fp32, fp16 or bf16", "dtype of the reduce-scatters",
     Choice<&S::gradient_payload, kPayloads>::read},
};

using P = ParallelPlan;
constexpr Field<ParallelPlan> kParallel[] = {
    {"dp", "whole number from 1", "replicas; gradients are all-reduced over them",
     Bounded<&P::dp, 1, 1 << 20>::read},
    {"fsdp", "whole number from 1", "shards of parameters, gradients and optimizer state",
     Bounded<&P::fsdp, 1, 1 << 20>::read},
    {"tp", "whole number from 1", "tensor-parallel ranks", Bounded<&P::tp, 1, 1 << 16>::read},
    {"pp", "whole number from 1", "pipeline stages", Bounded<&P::pp, 1, 1 << 16>::read},
    {"zero_stage", "0, 1 or 2", "0: DDP over dp; 1: optimizer state sharded over dp; 2: gradients too",
     Bounded<&P::zero_stage, 0, 2>::read},
    {"tp_kind", "column_gather or megatron", "how tensor parallelism splits the layers",
     Choice<&P::tp_kind, kTensorParallel>::read},
    {"sequence_parallel", "true or false", "megatron only: norms and dropouts split along the sequence",
     Plain<&P::sequence_parallel>::read},
    {"schedule", "sequential, gpipe, 1f1b or interleaved", "pipeline schedule",
     Choice<&P::schedule, kSchedules>::read},
    {"virtual_stages", "whole number from 1", "model chunks per rank (interleaved)",
     Bounded<&P::virtual_stages, 1, 1 << 12>::read},
    {"pp_forward_only_ranks", "true or false",
     "the faulty step in which only the last stage runs a backward; flagged in every report",
     Plain<&P::pp_forward_only_ranks>::read},
};

using C = CostSpec;
constexpr Field<CostSpec> kCost[] = {
    {"tokens", "number, such as 300e9", "training target", Bounded<&C::tokens, 0, 1000000000000000000>::read},
    {"price_per_gpu_hour", "price such as \"1.50 USD/h\"", "overrides the cluster's price",
     [](ObjectReader& r, std::string_view n, C& c) {
       return r.optional_quantity(n, Dimension::price_per_hour, c.price_per_gpu_hour_usd);
     }},
    {"electricity", "price such as \"0.15 USD/kWh\"", "price of energy",
     [](ObjectReader& r, std::string_view n, C& c) {
       return r.optional_quantity(n, Dimension::price_per_kwh, c.electricity_usd_per_kwh);
     }},
};

using R = RunSpec;
constexpr Field<RunSpec> kRun[] = {
    {"steps", "whole number from 0", "optimizer steps of a real run",
     Bounded<&R::steps, 0, 1000000000>::read},
    {"seed", "whole number from 0", "seed of weights and data", Bounded<&R::seed, 0, 1000000000000>::read},
    {"data", "path or \"synthetic\"", "token file or text", Plain<&R::data>::read},
    {"checkpoint_every", "whole number from 0", "steps between checkpoints; 0: none",
     Bounded<&R::checkpoint_every, 0, 1000000000>::read},
    {"output", "path", "folder for timelines, metrics and checkpoints", Plain<&R::output>::read},
    {"learning_rate", "number above 0", "peak learning rate", Bounded<&R::learning_rate, 0, 10>::read},
};

}  // namespace

std::span<const Field<TrainingSpec>> training_fields() { return kTraining; }
std::span<const Field<ParallelPlan>> parallel_fields() { return kParallel; }
std::span<const Field<DdpOptions>> ddp_fields() { return kDdp; }
std::span<const Field<FsdpOptions>> fsdp_fields() { return kFsdp; }
std::span<const Field<CostSpec>> cost_fields() { return kCost; }
std::span<const Field<RunSpec>> run_fields() { return kRun; }

bool read_parallel(const JsonValue& value, ParallelPlan& plan, Errors& errors) {
  const std::size_t before = errors.size();
  read_fields<ParallelPlan>(value, parallel_fields(), plan, errors, {"ddp", "fsdp_options"});
  if (const JsonValue* ddp = value.find("ddp")) read_fields<DdpOptions>(*ddp, ddp_fields(), plan.ddp, errors);
  if (const JsonValue* fsdp = value.find("fsdp_options")) {
    read_fields<FsdpOptions>(*fsdp, fsdp_fields(), plan.fsdp_options, errors);
  }
  return errors.size() == before;
}

}  // namespace foretrain
