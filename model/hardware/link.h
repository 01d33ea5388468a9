// Links as their standards and datasheets describe them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/base/units.h"

namespace foretrain {

// What a transfer over the link has to do; the network model chooses protocol constants by it.
// host: between CPU sockets and through host memory (staged copies); memory: a socket's own memory.
enum class LinkClass : std::uint8_t { pcie, nvlink, host, network, memory };
std::string_view name_of(LinkClass link_class);

struct LinkSpec {
  std::string name;  // "pcie_gen4_x16", "nvlink3", "infiniband_hdr"
  LinkClass link_class = LinkClass::pcie;
  Bandwidth bandwidth;       // per direction, after line coding, before protocol overhead
  Time latency;              // one traversal
  bool half_duplex = false;  // both directions share the bandwidth
};

// pcie_gen3_x8/x16, gen4, gen5; nvlink2..5 (per GPU, all lanes), nvlink bridges; qpi/upi/infinity fabric;
// infiniband edr/hdr/ndr/xdr; ethernet 1/10/25/100/200/400; host memory.
std::span<const LinkSpec> link_presets();
const LinkSpec* find_link(std::string_view name);

}  // namespace foretrain
