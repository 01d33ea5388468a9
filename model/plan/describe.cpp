#include <fmt/format.h>

#include "model/plan/parallel_plan.h"

namespace foretrain {
namespace {

std::string tensor_part(const ParallelPlan& plan) {
  if (plan.tp_kind == TensorParallelKind::column_gather) return fmt::format("TP{} (column gather)", plan.tp);
  return fmt::format("TP{} (megatron{})", plan.tp, plan.sequence_parallel ? ", sequence parallel" : "");
}

std::string pipeline_part(const ParallelPlan& plan) {
  std::string text = fmt::format("PP{} ", plan.pp);
  switch (plan.schedule) {
    case PipelineSchedule::sequential:
      text += "sequential";
      break;
    case PipelineSchedule::gpipe:
      text += "GPipe";
      break;
    case PipelineSchedule::one_f_one_b:
      text += "1F1B";
      break;
    case PipelineSchedule::interleaved:
      text += fmt::format("interleaved 1F1B ({} chunks)", plan.virtual_stages);
      break;
  }
  if (plan.pp_forward_only_ranks) text += " (faulty: backward on the last stage only)";
  return text;
}

std::string fsdp_part(const ParallelPlan& plan, bool alone) {
  const FsdpOptions& options = plan.fsdp_options;
  std::string text = plan.dp > 1 ? fmt::format("HSDP {}x{}", plan.dp, plan.fsdp)
                     : alone     ? fmt::format("FSDP x{}", plan.fsdp)
                                 : fmt::format("FSDP{}", plan.fsdp);
  text += options.unit == FsdpUnit::block ? " per block" : " whole model";
  if (options.sharding == FsdpSharding::shard_grad_op) text += " (SHARD_GRAD_OP)";
  return text;
}

std::string data_part(const ParallelPlan& plan, bool alone) {
  const std::string size = alone ? fmt::format("x{}", plan.dp) : fmt::format("DP{}", plan.dp);
  if (plan.zero_stage > 0) return fmt::format("ZeRO-{} {}", plan.zero_stage, size);
  return alone ? "DDP " + size : size;
}

}  // namespace

std::string describe(const ParallelPlan& plan) {
  std::vector<std::string> parts;
  const bool alone = plan.tp == 1 && plan.pp == 1;
  if (plan.tp > 1) parts.push_back(tensor_part(plan));
  if (plan.pp > 1) parts.push_back(pipeline_part(plan));
  if (plan.fsdp > 1) {
    parts.push_back(fsdp_part(plan, alone));
  } else if (plan.dp > 1) {
    parts.push_back(data_part(plan, alone));
  }
  return parts.empty() ? "single" : fmt::format("{}", fmt::join(parts, " x "));
}

}  // namespace foretrain
