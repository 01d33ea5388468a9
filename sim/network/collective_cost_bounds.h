// What no collective can beat, and what textbook algorithms cost, on uniform full-duplex links. Pure
// functions, safe from any thread.
//
// `bytes` means what nccl-tests prints as size, see CollectiveKind: all_reduce, broadcast, reduce, send_recv:
// one rank's buffer; all_gather: the gathered result; reduce_scatter and all_to_all: one rank's whole input.
// `bandwidth` is what one rank's port carries in each direction at the same time.
#pragma once

#include <cstdint>
#include <optional>

#include "model/base/units.h"
#include "model/hardware/collective_kind.h"

namespace foretrain {

// Bytes that the busiest port must carry in one direction, per byte of payload, when switches only forward:
// all_reduce 2(n-1)/n; all_gather, reduce_scatter, all_to_all (n-1)/n; broadcast, reduce, send_recv 1; all 0
// for n <= 1. nccl-tests calls the same number the bus bandwidth factor (its PERFORMANCE.md, after Patarasu
// and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 2009).
double bus_factor(CollectiveKind kind, std::int32_t ranks);

// The least time in which `ranks` ports of `bandwidth` can do it: bus_factor * bytes / bandwidth, rounded up
// to a picosecond. Holds for every algorithm but those that reduce or copy inside switches (nvls).
Time bandwidth_lower_bound(CollectiveKind kind, Bytes bytes, std::int32_t ranks, Bandwidth bandwidth);
// The same for switches that reduce and multicast (NVLS): an all_reduce sends its own buffer once and
// multicasts one n-th of the result, (n+1)/n; others as above, where they do not gain.
Time in_switch_lower_bound(CollectiveKind kind, Bytes bytes, std::int32_t ranks, Bandwidth bandwidth);

struct UniformLink {
  Time latency;  // of one step between neighbours
  Bandwidth bandwidth;
};

struct ClosedForm {
  Time total;  // latency + bandwidth
  Time latency;
  Time bandwidth;
  std::int32_t steps = 0;  // latencies in series
};

// Ring on uniform links (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005; NCCL src/device/all_reduce.h, all_gather.h):
//   all_reduce                  2(n-1) latency + 2(n-1)/n bytes/bandwidth
//   all_gather, reduce_scatter   (n-1) latency +  (n-1)/n bytes/bandwidth
//   all_to_all (pairwise)        (n-1) latency +  (n-1)/n bytes/bandwidth
//   broadcast, reduce            (n-1) latency +          bytes/bandwidth  (pipelined in vanishing chunks)
//   send_recv                          latency +          bytes/bandwidth
ClosedForm ring_closed_form(CollectiveKind kind, Bytes bytes, std::int32_t ranks, const UniformLink& link);

// Double binary tree, pipelined (Sanders, Speck and Traff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", 2009; NCCL 2.4): all_reduce 2 ceil(log2 n) latency + 2 bytes/bandwidth,
// broadcast and reduce ceil(log2 n) latency + bytes/bandwidth. Nothing for the other kinds.
std::optional<ClosedForm> tree_closed_form(CollectiveKind kind, Bytes bytes, std::int32_t ranks,
                                           const UniformLink& link);

// Steps of a ring (as above), and ceil(log2 n).
std::int32_t ring_steps(CollectiveKind kind, std::int32_t ranks);
std::int32_t tree_depth(std::int32_t ranks);

}  // namespace foretrain
