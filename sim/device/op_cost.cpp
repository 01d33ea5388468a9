#include "sim/device/op_cost.h"

#include <algorithm>

#include "sim/device/attention.h"
#include "sim/device/matmul.h"

namespace foretrain {
namespace {

Time memory_bound_time(const Op& op, const GpuSpec& gpu, const Profile& profile) {
  const Time traffic =
      transfer_time(op.read + op.written, gpu.memory_bandwidth * profile[ParameterId::memory_efficiency]);
  const Time arithmetic = compute_time(op.flops, gpu.fp32);
  return std::max(traffic, arithmetic) +
         Time::from_us(profile[ParameterId::kernel_overhead_us]) * static_cast<std::int64_t>(op.launches);
}

}  // namespace

Time device_time(const Op& op, Time kernel_model, const GpuSpec& gpu, const Profile& profile,
                 bool multi_gpu) {
  Time time;
  switch (op.kind) {
    case OpKind::matmul:
    case OpKind::attention_forward:
    case OpKind::attention_backward: {
      const bool tensor =
          op.kind != OpKind::matmul || matmul_kind(gpu, op.matmul) == KernelKind::matmul_tensor;
      const double efficiency =
          profile[tensor ? ParameterId::matmul_efficiency_tensor : ParameterId::matmul_efficiency_fp32];
      time = kernel_model * (1.0 / efficiency);
      break;
    }
    case OpKind::memory_bound:
      time = memory_bound_time(op, gpu, profile);
      break;
    case OpKind::collective:
    case OpKind::host_sync:
      return Time{};
  }
  return multi_gpu ? time * profile[ParameterId::multi_gpu_slowdown] : time;
}

Time kernel_model_time(const Op& op, const GpuSpec& gpu) {
  switch (op.kind) {
    case OpKind::matmul:
      return matmul_time(gpu, op.matmul);
    case OpKind::attention_forward:
      return attention_time(gpu, op.attention, AttentionPass::forward);
    case OpKind::attention_backward:
      return attention_time(gpu, op.attention, AttentionPass::backward);
    default:
      return Time{};
  }
}

std::vector<Time> kernel_model_times(const OpList& list, const GpuSpec& gpu) {
  std::vector<Time> times;
  times.reserve(list.ops.size());
  for (const Op& op : list.ops) times.push_back(kernel_model_time(op, gpu));
  return times;
}

Time host_time_per_launch(const Op& op, const Profile& profile) {
  return Time::from_us(profile[op.kind == OpKind::collective ? ParameterId::host_time_per_collective_us
                                                             : ParameterId::host_time_per_op_us]);
}

Segment CostedList::segment(std::int32_t begin, std::int32_t end) const {
  return segment_of(
      std::span(runs).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
}

CostedList cost(const OpList& list, std::span<const Time> kernel_model, const GpuSpec& gpu,
                const Profile& profile, bool multi_gpu) {
  CostedList costed;
  costed.runs.reserve(list.ops.size());
  costed.host_before_ps.reserve(list.ops.size() + 1);
  costed.host_before_ps.push_back(0);
  CostedList::Section section;
  for (std::size_t i = 0; i < list.ops.size(); ++i) {
    const Op& op = list.ops[i];
    KernelRun run;
    run.duration_ps = device_time(op, kernel_model[i], gpu, profile, multi_gpu).ps();
    run.host_per_launch_ps = host_time_per_launch(op, profile).ps();
    run.launches = std::max(1, op.launches);
    costed.runs.push_back(run);
    costed.host_before_ps.push_back(costed.host_before_ps.back() + run.host_ps());
    section.segment = then(section.segment, segment_of(run));
    section.end = static_cast<std::int32_t>(i) + 1;
    if (op.kind == OpKind::collective || op.kind == OpKind::host_sync) {
      section.stop = op.kind;
      costed.sections.push_back(section);
      section = CostedList::Section{section.end, section.end, OpKind::memory_bound, {}};
    }
  }
  if (section.end > section.begin) costed.sections.push_back(section);
  return costed;
}

}  // namespace foretrain
