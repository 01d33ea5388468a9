#include "sim/device/host_segment.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foretrain {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Time that `work_ps` takes at `rate`, rounded up.
std::int64_t stretched(double work_ps, double rate) {
  if (work_ps <= 0) return 0;
  if (!(rate > 0)) return kNever;
  const double time = std::ceil(work_ps / rate);
  return time < 9.0e18 ? static_cast<std::int64_t>(time) : kNever;
}

}  // namespace

Segment segment_of(const KernelRun& run) {
  Segment s;
  s.host_ps = run.host_ps();
  s.device_ps = run.duration_ps;
  s.bound_ps =
      std::max(run.host_per_launch_ps + run.duration_ps, s.host_ps + run.kernel_ps(run.launches - 1));
  return s;
}

Segment segment_of(std::span<const KernelRun> runs) {
  Segment all;
  for (const KernelRun& run : runs) all = then(all, segment_of(run));
  return all;
}

SegmentWalk::SegmentWalk(std::span<const KernelRun> runs, std::int64_t device_in_ps, std::int64_t host_in_ps,
                         std::vector<OpTimes>* op_times)
    : runs_(runs), op_times_(op_times), clock_(device_in_ps), host_(host_in_ps) {
  if (!runs_.empty()) remaining_ = static_cast<double>(runs_[0].kernel_ps(0));
}

void SegmentWalk::advance(std::int64_t until_ps, double rate) {
  while (run_ < runs_.size()) {
    const KernelRun& run = runs_[run_];
    const std::int64_t issued = host_ + run.host_per_launch_ps * (kernel_ + 1);
    const std::int64_t start = std::max(clock_, issued);
    if (start > until_ps) {
      if (until_ps > clock_) {
        idle_ += until_ps - clock_;
        clock_ = until_ps;
      }
      return;
    }
    idle_ += start - clock_;
    clock_ = start;
    if (op_times_ != nullptr && kernel_ == 0 && remaining_ == static_cast<double>(run.kernel_ps(0))) {
      op_times_->resize(run_ + 1);
      op_times_->back().start_ps = start;
    }
    const std::int64_t needed = stretched(remaining_, rate);
    if (needed > until_ps - start) {
      remaining_ -= static_cast<double>(until_ps - start) * rate;
      clock_ = until_ps;
      return;
    }
    clock_ = start + needed;
    if (++kernel_ == run.launches) {
      if (op_times_ != nullptr) op_times_->back().end_ps = clock_;
      host_ += run.host_ps();
      kernel_ = 0;
      ++run_;
    }
    if (run_ < runs_.size()) remaining_ = static_cast<double>(runs_[run_].kernel_ps(kernel_));
  }
}

std::int64_t SegmentWalk::end_at(double rate) const {
  std::int64_t clock = clock_;
  std::int64_t host = host_;
  double remaining = remaining_;
  std::int32_t kernel = kernel_;
  for (std::size_t i = run_; i < runs_.size(); ++i) {
    const KernelRun& run = runs_[i];
    for (; kernel < run.launches; ++kernel) {
      const std::int64_t start = std::max(clock, host + run.host_per_launch_ps * (kernel + 1));
      const std::int64_t needed = stretched(remaining, rate);
      if (needed == kNever) return kNever;
      clock = start + needed;
      if (kernel + 1 < run.launches) remaining = static_cast<double>(run.kernel_ps(kernel + 1));
    }
    host += run.host_ps();
    kernel = 0;
    if (i + 1 < runs_.size()) remaining = static_cast<double>(runs_[i + 1].kernel_ps(0));
  }
  return clock;
}

}  // namespace foretrain
