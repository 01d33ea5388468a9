#include "model/hardware/link.h"

#include <array>
#include <vector>

#include "model/base/text.h"

namespace foretrain {
namespace {

struct Row {
  std::string_view name;
  LinkClass link_class;
  double gb_per_s;  // per direction
  double latency_us;
  bool half_duplex = false;
};

// PCIe: GT/s x lanes x line coding (8b/10b until Gen2, 128b/130b from Gen3). NVLink: what one GPU has in each
// direction over all its links (bridges: over the bridge). Networks: line rate / 8.
constexpr std::array<Row, 38> kRows{{
    {"pcie_gen3_x8", LinkClass::pcie, 7.877, 0.5},
    {"pcie_gen3_x16", LinkClass::pcie, 15.754, 0.5},
    {"pcie_gen4_x8", LinkClass::pcie, 15.754, 0.5},
    {"pcie_gen4_x16", LinkClass::pcie, 31.508, 0.5},
    {"pcie_gen5_x8", LinkClass::pcie, 31.508, 0.5},
    {"pcie_gen5_x16", LinkClass::pcie, 63.015, 0.5},
    {"nvlink2", LinkClass::nvlink, 150, 0.7},
    {"nvlink3", LinkClass::nvlink, 300, 0.7},
    {"nvlink4", LinkClass::nvlink, 450, 0.7},
    {"nvlink5", LinkClass::nvlink, 900, 0.7},
    {"nvlink3_bridge_rtx3090", LinkClass::nvlink, 56.25, 0.7},
    {"nvlink3_bridge_a30", LinkClass::nvlink, 100, 0.7},
    {"nvlink3_bridge_a40", LinkClass::nvlink, 56.25, 0.7},
    {"nvlink3_bridge_a100", LinkClass::nvlink, 300, 0.7},
    {"nvlink4_bridge_h100", LinkClass::nvlink, 300, 0.7},
    {"qpi_9.6", LinkClass::host, 19.2, 0.3},
    {"upi_10.4", LinkClass::host, 20.8, 0.3},
    {"upi_16", LinkClass::host, 48, 0.3},
    {"xgmi2_x16", LinkClass::host, 36, 0.3},
    {"xgmi3_x16", LinkClass::host, 64, 0.3},
    {"host_memory_ddr4_4ch", LinkClass::memory, 85, 0.1},
    {"host_memory_ddr4_8ch", LinkClass::memory, 190, 0.1},
    {"host_memory_ddr5_8ch", LinkClass::memory, 300, 0.1},
    {"host_memory_ddr5_12ch", LinkClass::memory, 460, 0.1},
    {"infiniband_edr", LinkClass::network, 12.5, 1.0},
    {"infiniband_hdr100", LinkClass::network, 12.5, 1.0},
    {"infiniband_hdr", LinkClass::network, 25, 1.0},
    {"infiniband_ndr", LinkClass::network, 50, 1.0},
    {"infiniband_xdr", LinkClass::network, 100, 1.0},
    {"ethernet_1", LinkClass::network, 0.125, 10},
    {"ethernet_10", LinkClass::network, 1.25, 8},
    {"ethernet_25", LinkClass::network, 3.125, 5},
    {"ethernet_50", LinkClass::network, 6.25, 5},
    {"ethernet_100", LinkClass::network, 12.5, 4},
    {"ethernet_200", LinkClass::network, 25, 4},
    {"ethernet_400", LinkClass::network, 50, 4},
    {"ethernet_800", LinkClass::network, 100, 4},
    {"loopback", LinkClass::host, 10, 5, true},
}};

}  // namespace

std::string_view name_of(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::pcie:
      return "pcie";
    case LinkClass::nvlink:
      return "nvlink";
    case LinkClass::host:
      return "host";
    case LinkClass::network:
      return "network";
    case LinkClass::memory:
      return "memory";
  }
  return "?";
}

namespace {
const std::vector<LinkSpec>& presets() {
  static const std::vector<LinkSpec> list = [] {
    std::vector<LinkSpec> links;
    for (const Row& row : kRows) {
      links.push_back(LinkSpec{std::string(row.name), row.link_class, Bandwidth::gb_per_s(row.gb_per_s),
                               Time::from_us(row.latency_us), row.half_duplex});
    }
    return links;
  }();
  return list;
}
}  // namespace

std::span<const LinkSpec> link_presets() { return presets(); }

const LinkSpec* find_link(std::string_view name) {
  for (const LinkSpec& link : presets()) {
    if (equals_ignoring_case(link.name, name)) return &link;
  }
  return nullptr;
}

}  // namespace foretrain
