// What links gave to NCCL on public machines, as a share of their datasheet bandwidth: priors for machines
// that nobody measured. Made from the fits of `foretrain validate --collectives` to data/nccl_sweeps.csv
// (three parameters per sweep) and from its single large messages. Constants, safe from any thread.
#pragma once

#include <array>
#include <string_view>

#include "model/hardware/link.h"

namespace foretrain {

struct LinkPrior {
  std::string_view name;
  LinkClass link_class;
  // Bus bandwidth of large messages over the datasheet's bandwidth per direction of one rank's link. For
  // networks: bytes that must leave a machine over the sum of its NICs. May pass 1 where switches reduce.
  double efficiency;
  double efficiency_spread;  // standard deviation over machines, or a guess from the fit where there is one
  // Small-message time over NCCL's tuner constants (CollectiveParameters::latency_scale). For collectives
  // between machines it stands for the whole, inside and between.
  double latency_scale;
  double latency_spread;
  double protocol_ratio;  // CollectiveParameters::protocol_ratio
  int sweeps;             // machines behind the efficiency
  std::string_view provenance;
};

constexpr std::array<LinkPrior, 13> kLinkPriors{{
    {"pcie_gen3_peer", LinkClass::pcie, 0.73, 0.03, 1.28, 0.1, 4.2, 5,
     "4 x V100 on one PLX switch (11.3 GB/s); 2 and 4 x 1080 Ti and Titan X Pascal (11.1-12.2 GB/s, NCCL "
     "2.0)"},
    {"pcie_gen3_two_switches", LinkClass::pcie, 0.40, 0.07, 1.3, 0.3, 4.0, 11,
     "DeepBench boxes of 2, 4, 8 x M40, Titan X, P100 (5.8-6.3 GB/s) and 8 x 1080 Ti, Titan X Pascal (8.8 "
     "GB/s)"},
    {"pcie_gen3_via_host", LinkClass::host, 0.25, 0.04, 1.45, 0.17, 1.8, 3,
     "2 x RTX 2080 Ti without peer to peer: all_reduce, all_gather, all_to_all, per direction"},
    {"pcie_gen3_via_host_one_way", LinkClass::host, 0.70, 0.03, 1.4, 0.1, 2.0, 2,
     "2 x RTX 2080 Ti without peer to peer: broadcast, reduce"},
    {"pcie_gen4_via_host", LinkClass::host, 0.085, 0.02, 1.5, 0.3, 1.9, 4,
     "2 and 4 x RTX 4090 without peer to peer (2.1-3.7 GB/s; the slots' generation is not stated)"},
    {"pcie_gen4_two_sockets", LinkClass::pcie, 0.17, 0.05, 1.85, 0.3, 2.3, 1,
     "4 x A100-PCIE, two per socket (5.3 GB/s)"},
    {"nvlink2", LinkClass::nvlink, 0.87, 0.04, 1.5, 0.5, 4.0, 3,
     "4 x V100-SXM2 (124 GB/s of 150) and vTrain's 8 x V100-SXM2 (136 GB/s)"},
    {"nvlink3", LinkClass::nvlink, 0.77, 0.05, 1.7, 0.5, 4.0, 4,
     "4 x A100 (236 GB/s of 300), 8 x A100 send_recv (246), bridge pair (208), vTrain's 8 x A100 (227)"},
    {"nvlink4_nvls", LinkClass::nvlink, 1.04, 0.02, 2.1, 0.5, 5.0, 6,
     "8 x H100 with reduction in the switch (464-479 GB/s of 450)"},
    {"nvlink5_nvls", LinkClass::nvlink, 0.89, 0.05, 3.2, 0.5, 6.9, 2,
     "8 x B200 (762 GB/s of 900; timed by torch), GB200 NVL72 (838 GB/s)"},
    {"infiniband_rdma", LinkClass::network, 0.68, 0.11, 1.4, 0.4, 3.0, 5,
     "HDR100 Leonardo 16 and 32 nodes (0.64, 0.79), CX7 100 Gb/s (0.78), 8 x NDR400 (0.70), 8 x 200 Gb/s "
     "RoCE "
     "(0.50); 0.36 for one HDR NIC on the other socket"},
    {"ethernet_cloud", LinkClass::network, 0.85, 0.10, 7.5, 3.0, 4.0, 2,
     "GCP A3 8 x 200 Gb/s GPUDirect-TCP (0.95), AWS P6 8 x 400 Gb/s EFA (0.75)"},
    {"ethernet_tcp", LinkClass::network, 0.94, 0.03, 6.5, 1.0, 1.9, 1, "10 GbE sockets (1.18 GB/s of 1.25)"},
}};

// The prior of that name, or nullptr.
constexpr const LinkPrior* find_link_prior(std::string_view name) {
  for (const auto& prior : kLinkPriors) {
    if (prior.name == name) return &prior;
  }
  return nullptr;
}

}  // namespace foretrain
