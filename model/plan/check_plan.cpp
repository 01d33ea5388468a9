#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/plan/parallel_plan.h"

namespace foretrain {
namespace {

// The two divisors of `total` around `value` as a hint: "2 and 4 divide 12".
std::string divisor_hint(std::int64_t total, std::int64_t value, std::string_view of) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t d = std::min(value - 1, total); d >= 1; --d) {
    if (total % d == 0) {
      below = d;
      break;
    }
  }
  for (std::int64_t d = value + 1; d <= total; ++d) {
    if (total % d == 0) {
      above = d;
      break;
    }
  }
  if (below > 0 && above > 0) return fmt::format("nearest divisors of {}: {} and {}", of, below, above);
  if (below > 0) return fmt::format("nearest divisor of {}: {}", of, below);
  return fmt::format("nearest divisor of {}: {}", of, above);
}

class PlanChecker {
 public:
  PlanChecker(const ParallelPlan& plan, const TransformerConfig& model, const TrainingSpec& training)
      : plan_(plan), model_(model), training_(training) {}

  Errors run() {
    sizes();
    if (!errors_.empty()) return std::move(errors_);  // the rest divides by them
    tensor_parallel();
    pipeline();
    data_parallel();
    training();
    return std::move(errors_);
  }

 private:
  void error(std::string path, std::string message, std::string hint = {}) {
    errors_.push_back(
        Error{ErrorCode::input, {"", 0, 0, std::move(path)}, std::move(message), std::move(hint)});
  }
  void at_least_one(std::string path, std::int64_t value) {
    if (value < 1) error(std::move(path), fmt::format("is {}; expected a whole number from 1", value));
  }

  void sizes() {
    at_least_one("parallel.dp", plan_.dp);
    at_least_one("parallel.fsdp", plan_.fsdp);
    at_least_one("parallel.tp", plan_.tp);
    at_least_one("parallel.pp", plan_.pp);
    at_least_one("parallel.virtual_stages", plan_.virtual_stages);
    at_least_one("training.micro_batch_size", training_.micro_batch_size);
    at_least_one("training.micro_batches", training_.micro_batches);
    at_least_one("training.sequence_length", training_.sequence_length);
    if (!errors_.empty()) return;
    constexpr std::int64_t kMaxWorld = 1 << 22;
    std::int64_t world = 1;
    for (const std::int32_t size : {plan_.dp, plan_.fsdp, plan_.tp, plan_.pp}) {
      world = std::min<std::int64_t>(world * size, kMaxWorld + 1);
    }
    if (world > kMaxWorld) {
      error("parallel",
            fmt::format("has dp {} x fsdp {} x tp {} x pp {} ranks; at most {} can be described", plan_.dp,
                        plan_.fsdp, plan_.tp, plan_.pp, kMaxWorld),
            "choose smaller dimensions");
    }
    constexpr std::int64_t kMaxTokens = 1 << 28;  // keeps every byte count of a step below 2^62
    if (training_.sequence_length > kMaxTokens ||
        training_.micro_batch_size > kMaxTokens / training_.sequence_length) {
      error("training.micro_batch_size",
            fmt::format("is {}; with sequences of {} tokens that is more than {} tokens per micro-batch",
                        training_.micro_batch_size, training_.sequence_length, kMaxTokens),
            "use smaller micro-batches");
    }
    constexpr std::int64_t kMaxWork = 1 << 20;  // instructions of one stage stay below a few times this
    if (training_.micro_batches > kMaxWork / std::max<std::int64_t>(1, model_.layers)) {
      error("training.micro_batches",
            fmt::format("is {}; with {} layers at most {} can be described", training_.micro_batches,
                        model_.layers, kMaxWork / std::max<std::int64_t>(1, model_.layers)),
            "use larger micro-batches");
    }
  }

  void divides(std::string_view what, std::int64_t total) {
    if (total % plan_.tp == 0) return;
    error("parallel.tp", fmt::format("is {}, which does not divide {} = {}", plan_.tp, what, total),
          divisor_hint(total, plan_.tp, what));
  }

  void tensor_parallel() {
    const bool megatron = plan_.tp_kind == TensorParallelKind::megatron;
    if (plan_.sequence_parallel && !megatron) {
      error("parallel.sequence_parallel", "is true, but tp_kind is column_gather, which has no such form",
            "set parallel.tp_kind to megatron, or sequence_parallel to false");
    }
    if (plan_.tp == 1) return;
    if (megatron) {
      divides("model.heads", model_.heads);
      if (model_.heads % plan_.tp == 0 && model_.kv_heads % plan_.tp != 0 &&
          plan_.tp % model_.kv_heads != 0) {
        error("parallel.tp",
              fmt::format("is {}, which neither divides model.kv_heads = {} nor is a multiple of it",
                          plan_.tp, model_.kv_heads),
              divisor_hint(model_.kv_heads, plan_.tp, "model.kv_heads"));
      }
    } else {
      const std::int64_t q = model_.heads * model_.head_dim;
      const std::int64_t kv = model_.kv_heads * model_.head_dim;
      if (model_.fused_qkv) {
        divides("the columns of qkv", q + 2 * kv);
      } else {
        divides("the columns of q", q);
        divides("the columns of k and v", kv);
      }
      divides("model.hidden", model_.hidden);
    }
    divides("model.ffn_hidden", model_.ffn_hidden);
    if (megatron && plan_.sequence_parallel) divides("training.sequence_length", training_.sequence_length);
  }

  void pipeline() {
    const std::int64_t parts = std::int64_t{plan_.pp} * plan_.virtual_stages;
    if (plan_.pp > model_.layers) {
      error("parallel.pp",
            fmt::format("is {}, more than model.layers = {}; every stage needs a layer", plan_.pp,
                        model_.layers),
            fmt::format("use at most {}", model_.layers));
    } else if (parts > model_.layers) {
      error("parallel.virtual_stages",
            fmt::format("is {}: {} stages x {} chunks = {} parts, more than model.layers = {}",
                        plan_.virtual_stages, plan_.pp, plan_.virtual_stages, parts, model_.layers),
            fmt::format("use at most {}", model_.layers / plan_.pp));
    }
    const bool interleaved = plan_.schedule == PipelineSchedule::interleaved;
    if (plan_.virtual_stages > 1 && !interleaved) {
      error("parallel.virtual_stages",
            fmt::format("is {}, but only the interleaved schedule has more than one chunk per stage",
                        plan_.virtual_stages),
            "set parallel.schedule to interleaved, or virtual_stages to 1");
    } else if (plan_.virtual_stages > 1 && plan_.pp == 1) {
      error("parallel.virtual_stages",
            fmt::format("is {}, but parallel.pp is 1: there is no pipeline", plan_.virtual_stages),
            "set virtual_stages to 1");
    }
    if (interleaved && plan_.pp > 1 && training_.micro_batches % plan_.pp != 0) {
      const std::int64_t up = (training_.micro_batches / plan_.pp + 1) * plan_.pp;
      const std::int64_t down = up - plan_.pp;
      error("training.micro_batches",
            fmt::format("is {}; the interleaved schedule needs a multiple of parallel.pp = {}",
                        training_.micro_batches, plan_.pp),
            down > 0 ? fmt::format("use {} or {}", down, up) : fmt::format("use {}", up));
    }
    if (plan_.pp_forward_only_ranks && plan_.pp == 1) {
      error("parallel.pp_forward_only_ranks", "is true, but parallel.pp is 1: the only stage is the last one",
            "set it to false");
    }
    if (plan_.pp_forward_only_ranks && plan_.virtual_stages > 1) {
      error("parallel.pp_forward_only_ranks",
            fmt::format("is true, but with {} chunks per stage the last stage's backward needs the others'",
                        plan_.virtual_stages),
            "set virtual_stages to 1");
    }
  }

  void data_parallel() {
    if (plan_.zero_stage < 0 || plan_.zero_stage > 2) {
      error("parallel.zero_stage", fmt::format("is {}; expected 0, 1 or 2", plan_.zero_stage),
            plan_.zero_stage == 3 ? "ZeRO-3 is parallel.fsdp with fsdp_options.sharding full_shard" : "");
    } else if (plan_.zero_stage > 0 && plan_.fsdp > 1) {
      error("parallel.zero_stage",
            fmt::format("is {}, but parallel.fsdp is {}, which shards the optimizer state already",
                        plan_.zero_stage, plan_.fsdp),
            "set zero_stage to 0, or use dp instead of fsdp");
    }
    const std::pair<const char*, Bytes> caps[] = {{"parallel.ddp.bucket", plan_.ddp.bucket},
                                                  {"parallel.ddp.first_bucket", plan_.ddp.first_bucket}};
    for (const auto& [path, cap] : caps) {
      if (cap < Bytes(1)) error(path, fmt::format("is {} B; expected at least 1 B", cap.count()));
    }
    const std::pair<const char*, DType> payloads[] = {
        {"parallel.fsdp_options.parameter_payload", plan_.fsdp_options.parameter_payload},
        {"parallel.fsdp_options.gradient_payload", plan_.fsdp_options.gradient_payload}};
    for (const auto& [path, dtype] : payloads) {
      if (dtype != DType::fp32 && dtype != DType::fp16 && dtype != DType::bf16) {
        error(path, fmt::format("is {}; expected fp32, fp16 or bf16", name_of(dtype)));
      }
    }
  }

  void training() {
    if (model_.positions == PositionKind::learned && training_.sequence_length > model_.max_positions) {
      error("training.sequence_length",
            fmt::format("is {}, but the model has learned positions for {} tokens", training_.sequence_length,
                        model_.max_positions),
            fmt::format("use at most {}, or raise model.max_positions", model_.max_positions));
    }
  }

  const ParallelPlan& plan_;
  const TransformerConfig& model_;
  const TrainingSpec& training_;
  Errors errors_;
};

}  // namespace

Errors check(const ParallelPlan& plan, const TransformerConfig& model, const TrainingSpec& training) {
  return PlanChecker(plan, model, training).run();
}

}  // namespace foretrain
