#include "model/hardware/cluster.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace foretrain {
namespace {

class Builder {
 public:
  explicit Builder(const ClusterSpec& spec) : spec_(spec) {
    cluster_.name = spec.name;
    cluster_.gpu = spec.gpu;
    cluster_.peer_to_peer = spec.peer_to_peer;
    cluster_.price_per_gpu_hour_usd = spec.price_per_gpu_hour_usd;
    cluster_.power_usage_effectiveness = spec.power_usage_effectiveness;
  }

  Cluster build() {
    for (std::int32_t node = 0; node < spec_.nodes; ++node) add_node(node);
    if (spec_.nodes > 1) add_network();
    return std::move(cluster_);
  }

 private:
  std::int32_t vertex(std::string name, VertexKind kind, std::int32_t node) {
    cluster_.vertices.push_back(ClusterVertex{std::move(name), kind, node, Bandwidth{}});
    return static_cast<std::int32_t>(cluster_.vertices.size()) - 1;
  }
  void edge(std::int32_t a, std::int32_t b, const LinkSpec& link) {
    cluster_.edges.push_back(ClusterEdge{a, b, link});
  }

  void add_node(std::int32_t node) {
    const std::int32_t gpus = spec_.gpus_per_node;
    const auto name = [&](const char* kind, std::int32_t i) {
      return fmt::format("node{}.{}{}", node, kind, i);
    };
    std::vector<std::int32_t> gpu_vertices, bridges, above_gpu;
    for (std::int32_t g = 0; g < gpus; ++g)
      gpu_vertices.push_back(vertex(name("gpu", g), VertexKind::gpu, node));
    for (std::int32_t s = 0; s < spec_.sockets; ++s) {
      bridges.push_back(vertex(name("host", s), VertexKind::host_bridge, node));
      cluster_.vertices.back().capacity = spec_.host_memory.bandwidth;
      for (std::int32_t other = 0; other < s; ++other) {
        edge(bridges[static_cast<std::size_t>(other)], bridges.back(), spec_.socket_link);
      }
    }
    const auto bridge_of = [&](std::int32_t i, std::int32_t count) {
      return bridges[static_cast<std::size_t>(static_cast<std::int64_t>(i) * spec_.sockets / count)];
    };
    std::int32_t current = -1;
    for (std::int32_t g = 0; g < gpus; ++g) {
      std::int32_t above = bridge_of(g, gpus);
      if (spec_.gpus_per_pcie_switch > 0) {
        if (g % spec_.gpus_per_pcie_switch == 0) {
          current = vertex(name("switch", g / spec_.gpus_per_pcie_switch), VertexKind::pcie_switch, node);
          edge(current, above, spec_.pcie);
        }
        above = current;
      }
      edge(gpu_vertices[static_cast<std::size_t>(g)], above, spec_.pcie);
      above_gpu.push_back(above);
    }
    add_nvlink(node, gpu_vertices);
    if (spec_.nodes == 1) return;
    for (std::int32_t n = 0; n < spec_.nics_per_node; ++n) {
      const std::int32_t nic = vertex(name("nic", n), VertexKind::nic, node);
      // Beside the first GPU of its share, which is on the same switch or host bridge.
      const std::int64_t gpu = static_cast<std::int64_t>(n) * gpus / spec_.nics_per_node;
      edge(nic, above_gpu[static_cast<std::size_t>(gpu)], spec_.pcie);
      nics_.push_back(nic);
    }
  }

  void add_nvlink(std::int32_t node, const std::vector<std::int32_t>& gpus) {
    switch (spec_.intra_node) {
      case IntraNode::pcie:
        return;
      case IntraNode::nvlink_bridge_pairs:
        for (std::size_t g = 0; g + 1 < gpus.size(); g += 2) edge(gpus[g], gpus[g + 1], spec_.nvlink);
        return;
      case IntraNode::nvlink_mesh:
      case IntraNode::nvswitch: {
        // A mesh without switch carries as much per GPU, since collectives spread over rings that use all
        // links.
        const std::int32_t fabric = vertex(fmt::format("node{}.nvlink", node), VertexKind::nvswitch, node);
        for (const std::int32_t gpu : gpus) edge(gpu, fabric, spec_.nvlink);
        return;
      }
    }
  }

  void add_network() {
    const std::int32_t per_leaf = spec_.nodes_per_leaf;
    const std::int32_t leaves = (spec_.nodes + per_leaf - 1) / per_leaf;
    std::vector<std::int32_t> leaf_vertices;
    for (std::int32_t l = 0; l < leaves; ++l) {
      leaf_vertices.push_back(vertex(fmt::format("leaf{}", l), VertexKind::network_switch, -1));
    }
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      const std::int32_t node = static_cast<std::int32_t>(i) / spec_.nics_per_node;
      edge(nics_[i], leaf_vertices[static_cast<std::size_t>(node / per_leaf)], spec_.network);
    }
    if (leaves == 1) return;
    const std::int32_t spine = vertex("spine", VertexKind::network_switch, -1);
    LinkSpec uplink = spec_.network;
    uplink.name += "_uplinks";
    uplink.bandwidth = spec_.network.bandwidth *
                       (static_cast<double>(per_leaf) * spec_.nics_per_node / spec_.oversubscription);
    for (const std::int32_t leaf : leaf_vertices) edge(leaf, spine, uplink);
  }

  const ClusterSpec& spec_;
  Cluster cluster_;
  std::vector<std::int32_t> nics_;
};

void add_error(Errors& errors, std::string path, std::string message, std::string hint = {}) {
  errors.push_back(Error{ErrorCode::input, {"", 0, 0, std::move(path)}, std::move(message), std::move(hint)});
}

}  // namespace

std::string_view name_of(VertexKind kind) {
  static constexpr std::string_view kNames[] = {"gpu",      "pcie_switch", "host_bridge",
                                                "nvswitch", "nic",         "network_switch"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::int32_t Cluster::gpu_count() const {
  return static_cast<std::int32_t>(std::count_if(
      vertices.begin(), vertices.end(), [](const ClusterVertex& v) { return v.kind == VertexKind::gpu; }));
}

std::int32_t Cluster::node_count() const {
  std::int32_t most = -1;
  for (const ClusterVertex& v : vertices) most = std::max(most, v.node);
  return most + 1;
}

Errors check(const ClusterSpec& spec) {
  Errors errors;
  const auto link = [&](const char* path, const LinkSpec& value, bool needed, const char* example) {
    if (needed && !(value.bandwidth.bytes_per_s() > 0)) {
      add_error(errors, path, "is missing, and this cluster needs it",
                fmt::format("give a link preset or a bandwidth: \"{}\": \"{}\"", path, example));
    }
  };
  const bool many = spec.gpus_per_node > 1;
  link("pcie", spec.pcie, true, "pcie_gen4_x16");
  link("nvlink", spec.nvlink, many && spec.intra_node != IntraNode::pcie, "nvlink3");
  link("socket_link", spec.socket_link, spec.sockets > 1, "upi_10.4");
  link("network", spec.network, spec.nodes > 1, "infiniband_hdr");
  if (spec.sockets > spec.gpus_per_node) {
    add_error(errors, "sockets",
              fmt::format("is {}, more than the {} GPUs of a node", spec.sockets, spec.gpus_per_node),
              "use at most one socket per GPU");
  }
  if (spec.nodes > 1 && spec.nics_per_node > spec.gpus_per_node) {
    add_error(errors, "nics_per_node",
              fmt::format("is {}, more than the {} GPUs of a node", spec.nics_per_node, spec.gpus_per_node),
              "use at most one network card per GPU");
  }
  if (static_cast<std::int64_t>(spec.nodes) * spec.gpus_per_node > (std::int64_t{1} << 20)) {
    add_error(errors, "nodes",
              fmt::format("and gpus_per_node give {} GPUs; at most 1,048,576 are supported",
                          static_cast<std::int64_t>(spec.nodes) * spec.gpus_per_node));
  }
  if (spec.intra_node == IntraNode::nvlink_bridge_pairs && spec.gpus_per_node % 2 != 0) {
    add_error(errors, "gpus_per_node",
              fmt::format("is {}; bridge pairs need an even number", spec.gpus_per_node));
  }
  return errors;
}

Cluster build(const ClusterSpec& spec) { return Builder(spec).build(); }

Errors check(const Cluster& cluster) {
  Errors errors;
  const std::int32_t n = static_cast<std::int32_t>(cluster.vertices.size());
  if (cluster.gpu_count() == 0)
    add_error(errors, "vertices", "hold no vertex of kind \"gpu\"", "add one per rank");
  std::vector<std::int32_t> root(static_cast<std::size_t>(n));
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](std::int32_t v) {
    while (root[static_cast<std::size_t>(v)] != v) {
      v = root[static_cast<std::size_t>(v)] =
          root[static_cast<std::size_t>(root[static_cast<std::size_t>(v)])];
    }
    return v;
  };
  for (std::size_t i = 0; i < cluster.edges.size(); ++i) {
    const ClusterEdge& edge = cluster.edges[i];
    const std::string path = fmt::format("edges[{}]", i);
    if (edge.a < 0 || edge.a >= n || edge.b < 0 || edge.b >= n) {
      add_error(errors, path, "joins a vertex that does not exist");
      continue;
    }
    if (edge.a == edge.b) add_error(errors, path, "joins a vertex with itself");
    if (!(edge.link.bandwidth.bytes_per_s() > 0))
      add_error(errors, path, "has no bandwidth", "give one above 0");
    root[static_cast<std::size_t>(find(edge.a))] = find(edge.b);
  }
  std::int32_t first = -1;
  for (std::int32_t v = 0; v < n && errors.empty(); ++v) {
    if (cluster.vertices[static_cast<std::size_t>(v)].kind != VertexKind::gpu) continue;
    if (first < 0) first = v;
    if (find(v) != find(first)) {
      add_error(errors, "edges",
                fmt::format("leave \"{}\" unconnected with \"{}\"",
                            cluster.vertices[static_cast<std::size_t>(v)].name,
                            cluster.vertices[static_cast<std::size_t>(first)].name),
                "add edges until every GPU reaches every other");
    }
  }
  return errors;
}

}  // namespace foretrain
