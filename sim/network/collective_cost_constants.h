// NCCL's own tuner constants (NVIDIA/nccl src/graph/tuning.cc at commit 5067397c), in microseconds. They are
// a vendor's model, not measurements of any machine; machines scale them by a fitted latency scale.
#pragma once

#include <array>
#include <cstddef>

#include "model/hardware/collective_kind.h"

namespace foretrain::nccl {

// Indexed by Protocol: ll, ll128, simple.
using PerProtocol = std::array<double, 3>;

constexpr PerProtocol kTreeBaseUs{6.8, 14.0, 8.4};
constexpr PerProtocol kRingBaseUs{6.6, 14.0, 8.4};

// One hop over a medium.
struct HopLatency {
  PerProtocol tree_us;
  PerProtocol ring_us;
  double nvls_us;
};
constexpr HopLatency kNvlinkHop{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, 25.0};
constexpr HopLatency kPcieHop{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, 0.0};
constexpr HopLatency kNetworkHop{{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, 18.0};

// Least time per ring step between nodes, for posting the network request.
constexpr double kNetworkPostUs = 1.0;

constexpr double kTreeBandwidth = 0.92;   // of the ring's bandwidth
constexpr double kLl128Bandwidth = 0.92;  // of the ring's Simple bandwidth
constexpr double kNvlsBandwidth = 0.85;   // Hopper; 0.74 on Blackwell

// Bytes on the wire per payload byte: LL sends a 4-byte flag with every 4 bytes, LL128 8 bytes of flag in
// every 128 bytes (src/device/prims_ll.h, prims_ll128.h).
constexpr PerProtocol kWireExpansion{2.0, 128.0 / 120.0, 1.0};

// Channels and threads shrink until every thread has this many bytes (src/include/comm.h, src/enqueue.cc);
// for LL rings times the number of ranks.
constexpr PerProtocol kThreadThresholdBytes{8, 8, 64};
constexpr std::array<int, 3> kThreads{512, 640, 512};

constexpr std::size_t index_of(Protocol protocol) { return static_cast<std::size_t>(protocol); }

}  // namespace foretrain::nccl
