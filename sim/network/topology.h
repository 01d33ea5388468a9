// Routes over a cluster's graph. Constraints are what transfers share: each direction of each link (both
// together for half-duplex ones) and the capacity of vertices such as host bridges. Built once per
// cluster; routes are found on demand and remembered, so a Topology is not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "model/hardware/cluster.h"
#include "model/hardware/profile.h"

namespace foretrain {

// Constraints a transfer uses, with how often its bytes cross each.
struct RouteUse {
  std::int32_t constraint = 0;
  std::int32_t times = 1;
};
using Route = std::vector<RouteUse>;

class Topology {
 public:
  explicit Topology(const Cluster& cluster);
  Topology(Topology&&) noexcept;
  ~Topology();

  std::int32_t gpus() const;
  std::int32_t node_of(std::int32_t gpu) const;  // gpu counts the cluster's GPUs in order: it is the rank
  bool has_nvlink(std::int32_t gpu) const;
  std::int32_t nics_of_node(std::int32_t node) const;

  // The route from one GPU to another; nothing when they are not connected.
  //   inside a machine   over NVLink if that reaches, else the shortest way over PCIe and host bridges
  //                      (without peer_to_peer through host memory: the bridge's capacity counts twice)
  //   between machines   by the GPU's own NIC (the k-th share of GPUs uses the k-th NIC), the shortest way
  //                      through the switches, and the peer's NIC
  // Shortest: fewest links, then least latency, then widest, then lowest edge numbers.
  std::optional<Route> route(std::int32_t from, std::int32_t to) const;

  std::int32_t constraint_count() const;
  // Class and datasheet bandwidth of a constraint.
  LinkClass class_of(std::int32_t constraint) const;
  Bandwidth bandwidth_of(std::int32_t constraint) const;
  // Sum of what leaves a GPU over its links, under a profile: no algorithm sends faster.
  double egress_bytes_per_s(std::int32_t gpu, const Profile& profile) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// What large messages get of a constraint: its bandwidth times the profile's efficiency of its class; of the
// class `host` host_bridge_gb_per_s once that parameter has been given or fitted.
double capacity_bytes_per_s(LinkClass link_class, Bandwidth bandwidth, const Profile& profile);

}  // namespace foretrain
