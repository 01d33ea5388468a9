// The issuing host thread and the device's in-order queue as (max, +) algebra: a run of kernels between two
// points where the two must meet is summarised by three numbers. Pure values; safe from any thread.
//
// Kernel by kernel, with host time a per launch and duration d:
//   host = host + a;  device = max(device, host) + d
// so that after any run of kernels, whatever the entry times,
//   host_out   = host_in + H
//   device_out = max(device_in + G, host_in + X)
// with H and G the sums of a and d, and X the largest over kernels of (host time up to and including it +
// device work from it to the end): when the device has to wait for the host, X says when it finishes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/base/units.h"

namespace foretrain {

struct Segment {
  std::int64_t host_ps = 0;    // H
  std::int64_t device_ps = 0;  // G
  std::int64_t bound_ps = 0;   // X

  std::int64_t device_out(std::int64_t device_in, std::int64_t host_in) const {
    const std::int64_t device_bound = device_in + device_ps;
    const std::int64_t host_bound = host_in + bound_ps;
    return device_bound > host_bound ? device_bound : host_bound;
  }
  friend bool operator==(const Segment&, const Segment&) = default;
};

// `first` and then `second`: exactly what running them one after the other gives.
constexpr Segment then(const Segment& first, const Segment& second) {
  Segment both;
  both.host_ps = first.host_ps + second.host_ps;
  both.device_ps = first.device_ps + second.device_ps;
  const std::int64_t a = first.bound_ps + second.device_ps;
  const std::int64_t b = first.host_ps + second.bound_ps;
  both.bound_ps = a > b ? a : b;
  return both;
}

// What the host issues and the device does for one op: `launches` kernels that share the op's duration evenly
// (the first takes what does not divide).
struct KernelRun {
  std::int64_t duration_ps = 0;
  std::int64_t host_per_launch_ps = 0;
  std::int32_t launches = 1;  // at least 1

  std::int64_t host_ps() const { return host_per_launch_ps * launches; }
  std::int64_t kernel_ps(std::int32_t kernel) const {
    const std::int64_t each = duration_ps / launches;
    return kernel == 0 ? duration_ps - each * (launches - 1) : each;
  }
};

// Summary of one op. X is linear in the kernel index, so the largest is at one of the ends.
Segment segment_of(const KernelRun& run);
Segment segment_of(std::span<const KernelRun> runs);

// The same recurrence at kernel granularity, for runs whose device rate changes on the way (communication
// takes a share of the device). Rates apply to device work only; the host keeps its pace.
class SegmentWalk {
 public:
  struct OpTimes {
    std::int64_t start_ps = 0, end_ps = 0;
  };
  // The runs must outlive the walk. `op_times`, when given, receives the times of every op passed.
  SegmentWalk(std::span<const KernelRun> runs, std::int64_t device_in_ps, std::int64_t host_in_ps,
              std::vector<OpTimes>* op_times = nullptr);

  // Goes on at `rate` (work per time, 0..1) until `until_ps` or the end.
  void advance(std::int64_t until_ps, double rate);
  // When it would end at this rate from where it stands; INT64_MAX when it never would.
  std::int64_t end_at(double rate) const;
  bool done() const { return run_ == runs_.size(); }
  // Time of the last kernel's end, or how far the walk has come.
  std::int64_t clock_ps() const { return clock_; }
  // Device idle so far because the host had not issued the next kernel.
  std::int64_t idle_ps() const { return idle_; }

 private:
  std::span<const KernelRun> runs_;
  std::vector<OpTimes>* op_times_;
  std::size_t run_ = 0;
  std::int32_t kernel_ = 0;
  std::int64_t clock_;
  std::int64_t host_;     // when the current run's first launch starts to be issued
  double remaining_ = 0;  // device work left of the current kernel, ps at full rate
  std::int64_t idle_ = 0;
};

}  // namespace foretrain
