#include "sim/device/op_cost.h"

#include <algorithm>

namespace foretrain {
namespace {

Time matmul_or_attention_time(const Op& op, const GpuSpec& gpu, const Profile& profile) {
  const bool tensor = op.kind != OpKind::matmul || op.matmul.tensor_cores;
  const double efficiency =
      profile[tensor ? ParameterId::matmul_efficiency_tensor : ParameterId::matmul_efficiency_fp32];
  const FlopRate rate = tensor ? gpu.fp16 : gpu.fp32;
  return compute_time(op.flops, rate * efficiency);
}

Time memory_bound_time(const Op& op, const GpuSpec& gpu, const Profile& profile) {
  const Time traffic =
      transfer_time(op.read + op.written, gpu.memory_bandwidth * profile[ParameterId::memory_efficiency]);
  const Time arithmetic = compute_time(op.flops, gpu.fp32);
  return std::max(traffic, arithmetic) +
         Time::from_us(profile[ParameterId::kernel_overhead_us]) * static_cast<std::int64_t>(op.launches);
}

}  // namespace

Time device_time(const Op& op, const GpuSpec& gpu, const Profile& profile, bool multi_gpu) {
  Time time;
  switch (op.kind) {
    case OpKind::matmul:
    case OpKind::attention_forward:
    case OpKind::attention_backward:
      time = matmul_or_attention_time(op, gpu, profile);
      break;
    case OpKind::memory_bound:
      time = memory_bound_time(op, gpu, profile);
      break;
    case OpKind::collective:
    case OpKind::host_sync:
      return Time{};
  }
  return multi_gpu ? time * profile[ParameterId::multi_gpu_slowdown] : time;
}

Time host_time_per_launch(const Op& op, const Profile& profile) {
  return Time::from_us(profile[op.kind == OpKind::collective ? ParameterId::host_time_per_collective_us
                                                             : ParameterId::host_time_per_op_us]);
}

Segment CostedList::segment(std::int32_t begin, std::int32_t end) const {
  return segment_of(
      std::span(runs).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
}

CostedList cost(const OpList& list, const GpuSpec& gpu, const Profile& profile, bool multi_gpu) {
  CostedList costed;
  costed.runs.reserve(list.ops.size());
  costed.host_before_ps.reserve(list.ops.size() + 1);
  costed.host_before_ps.push_back(0);
  CostedList::Section section;
  for (std::size_t i = 0; i < list.ops.size(); ++i) {
    const Op& op = list.ops[i];
    KernelRun run;
    run.duration_ps = device_time(op, gpu, profile, multi_gpu).ps();
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
