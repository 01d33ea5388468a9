// How long one NCCL collective takes on an otherwise idle machine, and by which algorithm, protocol and
// channels: three numbers per machine on top of the constants of NCCL's tuner. Pure functions, safe from any
// thread. Closed forms on uniform links and lower bounds: sim/network/collective_cost_bounds.h.
//
// With X = bus_factor * bytes / bus_bandwidth, b and h the base and hop latencies of NCCL's tuner summed over
// the algorithm's steps, s the latency scale and r the protocol ratio:
//   one machine    ring LL      s b + sqrt((s h)^2 + (r X)^2)     a hop's latency hides behind its transfer
//                  ring Simple  s (b + h/2) + X                   half of each hop overlaps the next chunk
//   many machines  low          L + r x + [tree] sqrt(L x)        L = s (b + h) of LL; the root term is the
//                  high         r L + x                           fill of a pipeline with optimal chunks
// where x is X, or X / 0.92 for trees, "low" is LL (LL128 with NVLink inside the machines), and "high" is
// Simple. The cheapest of the candidates is taken, as NCCL means to. The low-latency protocol pays r times
// per byte, the other one r times per latency. Of these shapes only the constants 1/2 and 1 (root term) are
// ours; they were chosen on the public sweeps and are the same for all machines.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"
#include "model/hardware/collective_kind.h"

namespace foretrain {

struct CollectiveGroup {
  std::int32_t ranks = 1;
  std::int32_t nodes = 1;         // machines the ranks are spread over evenly, 1 <= nodes <= ranks
  bool nvlink = false;            // the ranks of one machine are joined by NVLink
  bool in_switch_reduce = false;  // NVLS may be used: NVSwitch of Hopper or later, all ranks
};

struct CollectiveParameters {
  double latency_scale = 1.3;  // times NCCL's latency constants; > 0
  Bandwidth bus_bandwidth;     // per rank and direction, for large messages
  double protocol_ratio = 2;   // r, >= 1
  // Channels at most, and what each carries; a zero channel_bandwidth means that channels never limit.
  std::int32_t max_channels = 32;
  Bandwidth channel_bandwidth;
};

struct CollectiveTime {
  Time total;      // latency + bandwidth
  Time latency;    // what is left at infinite bandwidth, and pipeline fill
  Time bandwidth;  // bytes over the rate this algorithm and protocol reach
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::int32_t steps = 0;     // hops in series
  std::int32_t channels = 0;  // in use
  Bytes wire_bytes_per_rank;  // sent by one rank, flags of LL and LL128 included
};

// Every way NCCL has, in a fixed order (ring before tree before nvls, ll before simple). Empty for one rank
// or no bytes. Values out of range are drawn to the nearest in range (ratio >= 1, nodes in 1..ranks).
std::vector<CollectiveTime> candidates(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group,
                                       const CollectiveParameters& parameters);

// The cheapest candidate; the first of equals. One rank, or no bytes: no time at all. A bandwidth that is
// not positive gives Time::max(). Never below bandwidth_lower_bound(), or in_switch_lower_bound() for nvls.
CollectiveTime cost(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group,
                    const CollectiveParameters& parameters);

// The total of cost() in seconds without rounding, for fitting.
double cost_seconds(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                    const CollectiveParameters& parameters);

// Channels that NCCL uses for a payload: one fewer until every thread has its least number of bytes
// (src/enqueue.cc, topoGetAlgoInfo).
std::int32_t channels_for(Bytes bytes, std::int32_t ranks, Algorithm algorithm, Protocol protocol,
                          std::int32_t max_channels);

}  // namespace foretrain
