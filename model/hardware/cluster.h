// A cluster as a graph of GPUs, switches, host bridges, sockets, NICs and network switches. Presets and
// the files people write both end as this graph; the simulator knows no other form.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"
#include "model/hardware/gpu.h"
#include "model/hardware/link.h"

namespace foretrain {

enum class VertexKind : std::uint8_t { gpu, pcie_switch, host_bridge, nvswitch, nic, network_switch };
std::string_view name_of(VertexKind kind);

struct ClusterVertex {
  std::string name;  // "node0.gpu3"
  VertexKind kind = VertexKind::gpu;
  std::int32_t node = 0;  // machine it is in; -1 for network switches
  Bandwidth capacity;     // of all traffic through it, such as a host bridge's memory; zero: no limit
};

struct ClusterEdge {
  std::int32_t a = -1, b = -1;  // vertices; one link in each direction
  LinkSpec link;
};

struct Cluster {
  std::string name;
  GpuSpec gpu;                          // all GPUs of a cluster are of one kind
  std::vector<ClusterVertex> vertices;  // rank r runs on the r-th vertex of kind gpu
  std::vector<ClusterEdge> edges;
  // Whether GPUs of one machine copy to each other directly over PCIe. When not, every transfer goes
  // through host memory: up to the host bridge and down again, using the host link twice.
  bool peer_to_peer = true;
  double price_per_gpu_hour_usd = 0;  // 0: unknown
  double power_usage_effectiveness = 1.0;

  std::int32_t gpu_count() const;
  std::int32_t node_count() const;
};

enum class IntraNode : std::uint8_t { pcie, nvlink_bridge_pairs, nvlink_mesh, nvswitch };

// What a regular cluster is made of; build() makes the graph.
struct ClusterSpec {
  std::string name;
  GpuSpec gpu;
  std::int32_t nodes = 1;
  std::int32_t gpus_per_node = 1;
  IntraNode intra_node = IntraNode::pcie;
  std::int32_t gpus_per_pcie_switch = 0;  // 0: GPUs hang on the host bridge directly
  std::int32_t sockets = 1;               // host bridges per node
  LinkSpec pcie;
  LinkSpec nvlink;       // used unless intra_node == pcie
  LinkSpec socket_link;  // between host bridges
  LinkSpec host_memory;  // capacity of one host bridge for all traffic through it
  bool peer_to_peer = true;
  std::int32_t nics_per_node = 1;
  LinkSpec network;                  // NIC to its network switch
  double oversubscription = 1.0;     // of the network's core: 2.0 = half bisection
  std::int32_t nodes_per_leaf = 32;  // leaf switch radix; beyond it a second level is built
  double price_per_gpu_hour_usd = 0;
  double power_usage_effectiveness = 1.0;
};

Errors check(const ClusterSpec& spec);
Cluster build(const ClusterSpec& spec);
// Graph that is not connected, dangling edges, no GPUs, zero bandwidth: as errors.
Errors check(const Cluster& cluster);

std::span<const ClusterSpec> cluster_presets();
const ClusterSpec* find_cluster(std::string_view name);

}  // namespace foretrain
