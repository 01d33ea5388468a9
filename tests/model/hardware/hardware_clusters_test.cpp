#include <gtest/gtest.h>

#include <set>

#include "model/hardware/cluster.h"

namespace foretrain {
namespace {

// PCI Express Base Specification: GT/s per lane x lanes x 128/130 / 8.
TEST(Links, PcieBandwidthIsThatOfItsLanes) {
  const std::tuple<const char*, double, int> links[] = {{"pcie_gen3_x16", 8, 16},  {"pcie_gen4_x16", 16, 16},
                                                        {"pcie_gen5_x16", 32, 16}, {"pcie_gen3_x8", 8, 8},
                                                        {"pcie_gen4_x8", 16, 8},   {"pcie_gen5_x8", 32, 8}};
  for (const auto& [name, gt, lanes] : links) {
    const LinkSpec* link = find_link(name);
    ASSERT_NE(link, nullptr);
    EXPECT_NEAR(link->bandwidth.gb_per_s(), gt * lanes * 128 / 130 / 8, 0.002) << name;
  }
}

TEST(Links, NetworksCarryTheirLineRate) {
  const std::pair<const char*, double> gbit[] = {{"infiniband_edr", 100}, {"infiniband_hdr", 200},
                                                 {"infiniband_ndr", 400}, {"infiniband_xdr", 800},
                                                 {"ethernet_1", 1},       {"ethernet_400", 400}};
  for (const auto& [name, rate] : gbit)
    EXPECT_DOUBLE_EQ(find_link(name)->bandwidth.gb_per_s() * 8, rate) << name;
}

TEST(Links, NamesAreUnique) {
  std::set<std::string> names;
  for (const LinkSpec& link : link_presets()) EXPECT_TRUE(names.insert(link.name).second) << link.name;
}

TEST(Clusters, EveryPresetIsCompleteAndConnectedAtAnyNumberOfNodes) {
  EXPECT_GE(cluster_presets().size(), 15u);
  for (const ClusterSpec& preset : cluster_presets()) {
    for (const std::int32_t nodes : {1, 2, 33, 65}) {
      ClusterSpec spec = preset;
      spec.nodes = nodes;
      EXPECT_TRUE(check(spec).empty()) << spec.name << ": " << to_text(check(spec));
      const Cluster cluster = build(spec);
      EXPECT_EQ(cluster.gpu_count(), nodes * spec.gpus_per_node);
      EXPECT_EQ(cluster.node_count(), nodes);
      EXPECT_TRUE(check(cluster).empty()) << spec.name << ": " << to_text(check(cluster));
    }
  }
}

TEST(Clusters, OversubscriptionNarrowsTheCore) {
  ClusterSpec spec = *find_cluster("8xh100_sxm");
  spec.nodes = 64;
  const auto core = [&](double factor) {
    spec.oversubscription = factor;
    const Cluster cluster = build(spec);
    return cluster.edges.back().link.bandwidth.gb_per_s();
  };
  EXPECT_DOUBLE_EQ(core(1.0), 32 * 8 * 50.0);
  EXPECT_DOUBLE_EQ(core(4.0), core(1.0) / 4);
}

TEST(Clusters, AGraphInTwoPiecesIsAnError) {
  Cluster cluster = build(*find_cluster("4xa30_pcie"));
  cluster.vertices.push_back(ClusterVertex{"alone", VertexKind::gpu, 0, {}});
  const Errors errors = check(cluster);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].message.find("\"alone\""), std::string::npos);
}

}  // namespace
}  // namespace foretrain
