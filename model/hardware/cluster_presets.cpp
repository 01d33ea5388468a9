// Built-in clusters: ordinary machines of each GPU. Every field can be changed in a scenario.
#include <vector>

#include "model/base/text.h"
#include "model/hardware/cluster.h"

namespace foretrain {
namespace {

LinkSpec link(std::string_view name) {
  const LinkSpec* found = find_link(name);
  return found != nullptr ? *found : LinkSpec{};
}

struct Machine {
  const char* name;
  const char* gpu;
  std::int32_t gpus;
  IntraNode intra_node;
  const char* pcie;
  const char* nvlink;
  const char* socket_link;
  std::int32_t sockets;
  std::int32_t per_switch;
  std::int32_t nics;
  const char* network;
  bool peer_to_peer = true;
};

constexpr Machine kMachines[] = {
    {"1xa30", "a30", 1, IntraNode::pcie, "pcie_gen4_x16", "", "", 1, 0, 1, "infiniband_hdr"},
    // Two GPUs on each socket, as dual-socket servers with PCIe cards are wired.
    {"4xa30_pcie", "a30", 4, IntraNode::pcie, "pcie_gen4_x16", "", "upi_10.4", 2, 0, 1, "infiniband_hdr"},
    {"4xa30_nvlink", "a30", 4, IntraNode::nvlink_bridge_pairs, "pcie_gen4_x16", "nvlink3_bridge_a30",
     "upi_10.4", 2, 0, 1, "infiniband_hdr"},
    {"4xa10_pcie", "a10", 4, IntraNode::pcie, "pcie_gen4_x16", "", "upi_10.4", 2, 0, 1, "ethernet_100"},
    {"8xt4_pcie", "t4", 8, IntraNode::pcie, "pcie_gen3_x16", "", "upi_10.4", 2, 0, 1, "ethernet_100"},
    {"8xl4_pcie", "l4", 8, IntraNode::pcie, "pcie_gen4_x16", "", "upi_16", 2, 0, 1, "ethernet_100"},
    {"8xl40s_pcie", "l40s", 8, IntraNode::pcie, "pcie_gen4_x16", "", "upi_16", 2, 4, 2, "ethernet_400"},
    {"8xv100_sxm", "v100_sxm2_32", 8, IntraNode::nvlink_mesh, "pcie_gen3_x16", "nvlink2", "qpi_9.6", 2, 2, 4,
     "infiniband_edr"},
    {"8xa100_pcie", "a100_80_pcie", 8, IntraNode::pcie, "pcie_gen4_x16", "", "xgmi2_x16", 2, 4, 2,
     "infiniband_hdr"},
    {"8xa100_40_sxm", "a100_40_sxm", 8, IntraNode::nvswitch, "pcie_gen4_x16", "nvlink3", "xgmi2_x16", 2, 2, 8,
     "infiniband_hdr"},
    {"8xa100_80_sxm", "a100_80_sxm", 8, IntraNode::nvswitch, "pcie_gen4_x16", "nvlink3", "xgmi2_x16", 2, 2, 8,
     "infiniband_hdr"},
    {"8xh100_pcie", "h100_pcie", 8, IntraNode::nvlink_bridge_pairs, "pcie_gen5_x16", "nvlink4_bridge_h100",
     "upi_16", 2, 4, 2, "infiniband_ndr"},
    {"8xh100_sxm", "h100_sxm", 8, IntraNode::nvswitch, "pcie_gen5_x16", "nvlink4", "upi_16", 2, 2, 8,
     "infiniband_ndr"},
    {"8xh200", "h200", 8, IntraNode::nvswitch, "pcie_gen5_x16", "nvlink4", "upi_16", 2, 2, 8,
     "infiniband_ndr"},
    {"8xb200", "b200", 8, IntraNode::nvswitch, "pcie_gen5_x16", "nvlink5", "upi_16", 2, 2, 8,
     "infiniband_ndr"},
    {"2xrtx3090_nvlink", "rtx3090", 2, IntraNode::nvlink_bridge_pairs, "pcie_gen4_x16",
     "nvlink3_bridge_rtx3090", "", 1, 0, 1, "ethernet_10"},
    {"4xrtx4090", "rtx4090", 4, IntraNode::pcie, "pcie_gen4_x16", "", "", 1, 0, 1, "ethernet_25", false},
    {"8xrtx5090", "rtx5090", 8, IntraNode::pcie, "pcie_gen5_x16", "", "upi_16", 2, 0, 1, "ethernet_100",
     false},
    {"cpu", "cpu", 4, IntraNode::pcie, "loopback", "", "", 1, 0, 1, "ethernet_1"},
};

const std::vector<ClusterSpec>& presets() {
  static const std::vector<ClusterSpec> list = [] {
    std::vector<ClusterSpec> clusters;
    for (const Machine& m : kMachines) {
      const GpuSpec* gpu = find_gpu(m.gpu);
      if (gpu == nullptr) continue;
      ClusterSpec spec;
      spec.name = m.name;
      spec.gpu = *gpu;
      spec.gpus_per_node = m.gpus;
      spec.intra_node = m.intra_node;
      spec.gpus_per_pcie_switch = m.per_switch;
      spec.sockets = m.sockets;
      spec.pcie = link(m.pcie);
      spec.nvlink = link(m.nvlink);
      spec.socket_link = link(m.socket_link);
      spec.host_memory = link("host_memory_ddr4_8ch");
      spec.peer_to_peer = m.peer_to_peer;
      spec.nics_per_node = m.nics;
      spec.network = link(m.network);
      spec.price_per_gpu_hour_usd = gpu->price_per_hour_usd;
      clusters.push_back(std::move(spec));
    }
    return clusters;
  }();
  return list;
}

}  // namespace

std::span<const ClusterSpec> cluster_presets() { return presets(); }

const ClusterSpec* find_cluster(std::string_view name) {
  for (const ClusterSpec& cluster : presets()) {
    if (equals_ignoring_case(cluster.name, name)) return &cluster;
  }
  return nullptr;
}

}  // namespace foretrain
