// What an op costs the device and the host under a profile: matmul and attention by the kernel model,
// everything else by the bytes it moves. Costs are per op list, made once per simulation and shared by every
// instruction, layer, micro-batch and identical rank that uses the list. Safe from any thread once made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/hardware/gpu.h"
#include "model/hardware/profile.h"
#include "model/ops/op.h"
#include "sim/device/host_segment.h"

namespace foretrain {

// Device time of one op on one GPU; zero for collectives and host syncs, whose time is decided elsewhere.
//   matmul, attention: kernel model / efficiency of the cores in use
//   memory bound:      max(bytes / (bandwidth x memory_efficiency), flops / fp32 rate) + overhead per launch
// With more than one GPU in the job, everything times multi_gpu_slowdown.
// `kernel_model`: kernel_model_time of the op, which no profile changes.
Time device_time(const Op& op, Time kernel_model, const GpuSpec& gpu, const Profile& profile, bool multi_gpu);
// What the kernel model says for a matmul or attention; zero for other ops.
Time kernel_model_time(const Op& op, const GpuSpec& gpu);
std::vector<Time> kernel_model_times(const OpList& list, const GpuSpec& gpu);
// Time of the issuing thread for one launch of the op (of one collective).
Time host_time_per_launch(const Op& op, const Profile& profile);

// An op list cut where its stream must meet something else.
struct CostedList {
  // A maximal run of ops [begin, end) that ends with a collective or a host sync, or at the end of the list.
  // That last op belongs to it: issuing it takes host time.
  struct Section {
    std::int32_t begin = 0, end = 0;
    OpKind stop = OpKind::memory_bound;  // collective or host_sync; anything else: the list ends here
    Segment segment;
  };
  std::vector<KernelRun> runs;               // per op
  std::vector<std::int64_t> host_before_ps;  // host time of the ops before op i; one more entry than ops
  std::vector<Section> sections;
  std::int64_t host_ps() const { return host_before_ps.back(); }
  Segment segment(std::int32_t begin, std::int32_t end) const;
};

// `kernel_model`: kernel_model_times of the list.
CostedList cost(const OpList& list, std::span<const Time> kernel_model, const GpuSpec& gpu,
                const Profile& profile, bool multi_gpu);

}  // namespace foretrain
