#include "sim/network/topology.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include <boost/graph/adjacency_list.hpp>

namespace foretrain {
namespace {

struct EdgeIndex {
  std::int32_t edge = -1;
};
using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, EdgeIndex>;

// Length of a way: fewest links, then least latency, then widest.
struct Length {
  std::int32_t links = 0;
  std::int64_t latency_ps = 0;
  double narrowness = 0;  // sum of 1 / bandwidth
  friend auto operator<=>(const Length&, const Length&) = default;
};

}  // namespace

class Topology::Impl {
 public:
  explicit Impl(const Cluster& cluster) : cluster_(cluster), graph_(cluster.vertices.size()) {
    for (std::size_t e = 0; e < cluster_.edges.size(); ++e) {
      boost::add_edge(static_cast<std::size_t>(cluster_.edges[e].a),
                      static_cast<std::size_t>(cluster_.edges[e].b), EdgeIndex{static_cast<std::int32_t>(e)},
                      graph_);
    }
    nics_.resize(static_cast<std::size_t>(cluster_.node_count()));
    gpus_in_node_.resize(nics_.size());
    gpu_index_.assign(cluster_.vertices.size(), -1);
    for (std::size_t v = 0; v < cluster_.vertices.size(); ++v) {
      const ClusterVertex& vertex = cluster_.vertices[v];
      if (vertex.kind == VertexKind::gpu) {
        gpu_index_[v] = static_cast<std::int32_t>(gpu_vertices_.size());
        local_index_.push_back(vertex.node >= 0 ? gpus_in_node_[static_cast<std::size_t>(vertex.node)]++ : 0);
        gpu_vertices_.push_back(static_cast<std::int32_t>(v));
      } else if (vertex.kind == VertexKind::nic && vertex.node >= 0) {
        nics_[static_cast<std::size_t>(vertex.node)].push_back(static_cast<std::int32_t>(v));
      }
    }
  }

  const ClusterVertex& vertex(std::int32_t v) const { return cluster_.vertices[static_cast<std::size_t>(v)]; }

  // Edges of the shortest way from one vertex to another over the vertices that `allowed` accepts (the ends
  // are always allowed). Empty optional: none.
  template <typename Allowed>
  std::optional<std::vector<std::int32_t>> shortest(std::int32_t from, std::int32_t to,
                                                    Allowed allowed) const {
    struct Mark {
      Length length;
      std::int32_t edge = -1;
      std::int32_t before = -1;
    };
    using Item =
        std::tuple<Length, std::int32_t, std::int32_t, std::int32_t>;  // length, edge, vertex, before
    std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
    std::map<std::int32_t, Mark> done;
    open.push({Length{}, -1, from, -1});
    while (!open.empty()) {
      const auto [length, edge, v, before] = open.top();
      open.pop();
      if (!done.emplace(v, Mark{length, edge, before}).second) continue;
      if (v == to) break;
      if (v != from && !allowed(v)) continue;
      const auto [first, last] = boost::out_edges(static_cast<std::size_t>(v), graph_);
      for (auto it = first; it != last; ++it) {
        const std::int32_t e = graph_[*it].edge;
        const std::int32_t next = static_cast<std::int32_t>(boost::target(*it, graph_));
        if (done.contains(next) || (next != to && !allowed(next))) continue;
        const LinkSpec& link = cluster_.edges[static_cast<std::size_t>(e)].link;
        open.push({Length{length.links + 1, length.latency_ps + link.latency.ps(),
                          length.narrowness + 1.0 / link.bandwidth.bytes_per_s()},
                   e, next, v});
      }
    }
    if (!done.contains(to)) return std::nullopt;
    std::vector<std::int32_t> edges;
    for (std::int32_t v = to; v != from; v = done.at(v).before) edges.push_back(done.at(v).edge);
    std::reverse(edges.begin(), edges.end());
    return edges;
  }

  bool is_nvlink(std::int32_t edge) const {
    return cluster_.edges[static_cast<std::size_t>(edge)].link.link_class == LinkClass::nvlink;
  }

  std::optional<std::vector<std::int32_t>> way(std::int32_t a, std::int32_t b) const {
    const std::int32_t node = vertex(a).node;
    if (node == vertex(b).node && node >= 0) {
      // NVLink first: switch vertices of this machine, and GPUs only where NVLink joins them (mesh by hand).
      const auto over_nvlink = shortest(a, b, [&](std::int32_t v) {
        return vertex(v).node == node && vertex(v).kind == VertexKind::nvswitch;
      });
      if (over_nvlink) return over_nvlink;
      const auto inside = shortest(a, b, [&](std::int32_t v) {
        return vertex(v).node == node && vertex(v).kind != VertexKind::gpu &&
               vertex(v).kind != VertexKind::nic;
      });
      if (inside) return inside;
    } else if (const auto between = way_between(a, b)) {
      return between;
    }
    const auto without_gpus =
        shortest(a, b, [&](std::int32_t v) { return vertex(v).kind != VertexKind::gpu; });
    return without_gpus ? without_gpus : shortest(a, b, [](std::int32_t) { return true; });
  }

  std::optional<std::vector<std::int32_t>> way_between(std::int32_t a, std::int32_t b) const {
    const std::int32_t out = nic_of(a);
    const std::int32_t in = nic_of(b);
    if (out < 0 || in < 0) return std::nullopt;
    const auto inside = [&](std::int32_t node) {
      return [this, node](std::int32_t v) {
        return vertex(v).node == node && vertex(v).kind != VertexKind::gpu &&
               vertex(v).kind != VertexKind::nic;
      };
    };
    auto first = shortest(a, out, inside(vertex(a).node));
    const auto last = shortest(in, b, inside(vertex(b).node));
    if (!first || !last) return std::nullopt;
    const auto network = network_way(out, in);
    if (!network) return std::nullopt;
    first->insert(first->end(), network->begin(), network->end());
    first->insert(first->end(), last->begin(), last->end());
    return first;
  }

  // Between two NICs. A NIC with one network link lends its switch: the way between switches is remembered.
  std::optional<std::vector<std::int32_t>> network_way(std::int32_t out, std::int32_t in) const {
    const auto only = [&](std::int32_t v) { return vertex(v).kind == VertexKind::network_switch; };
    const auto [out_edge, out_switch] = uplink(out);
    const auto [in_edge, in_switch] = uplink(in);
    if (out_switch < 0 || in_switch < 0) return shortest(out, in, only);
    const auto key = std::pair(out_switch, in_switch);
    auto known = switch_ways_.find(key);
    if (known == switch_ways_.end()) {
      known = switch_ways_.emplace(key, shortest(out_switch, in_switch, only)).first;
    }
    if (!known->second) return std::nullopt;
    std::vector<std::int32_t> edges{out_edge};
    edges.insert(edges.end(), known->second->begin(), known->second->end());
    edges.push_back(in_edge);
    return edges;
  }

  // The only edge from a NIC to a network switch, and that switch; {-1, -1} when there are several or none.
  std::pair<std::int32_t, std::int32_t> uplink(std::int32_t nic) const {
    std::pair<std::int32_t, std::int32_t> found{-1, -1};
    const auto [first, last] = boost::out_edges(static_cast<std::size_t>(nic), graph_);
    for (auto it = first; it != last; ++it) {
      const std::int32_t next = static_cast<std::int32_t>(boost::target(*it, graph_));
      if (vertex(next).kind != VertexKind::network_switch) continue;
      if (found.first >= 0) return {-1, -1};
      found = {graph_[*it].edge, next};
    }
    return found;
  }

  std::int32_t nic_of(std::int32_t gpu_vertex) const {
    const std::int32_t node = vertex(gpu_vertex).node;
    if (node < 0) return -1;
    const std::vector<std::int32_t>& nics = nics_[static_cast<std::size_t>(node)];
    if (nics.empty()) return -1;
    const std::int64_t local =
        local_index_[static_cast<std::size_t>(gpu_index_[static_cast<std::size_t>(gpu_vertex)])];
    const std::int64_t share =
        local * static_cast<std::int64_t>(nics.size()) / gpus_in_node_[static_cast<std::size_t>(node)];
    return nics[static_cast<std::size_t>(share)];
  }

  Route uses_of(std::int32_t from, const std::vector<std::int32_t>& edges) const {
    Route route;
    const auto add = [&](std::int32_t constraint, std::int32_t times) {
      for (RouteUse& use : route) {
        if (use.constraint == constraint) {
          use.times += times;
          return;
        }
      }
      route.push_back(RouteUse{constraint, times});
    };
    std::int32_t at = from;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const ClusterEdge& edge = cluster_.edges[static_cast<std::size_t>(edges[i])];
      const bool forward = edge.a == at;
      add(2 * edges[i] + (edge.link.half_duplex || forward ? 0 : 1), 1);
      at = forward ? edge.b : edge.a;
      const bool last = i + 1 == edges.size();
      if (!last && vertex(at).capacity.bytes_per_s() > 0) {
        const bool staged = !cluster_.peer_to_peer && vertex(at).kind == VertexKind::host_bridge;
        add(vertex_constraint(at), staged ? 2 : 1);
      }
    }
    return route;
  }

  std::int32_t vertex_constraint(std::int32_t v) const {
    return 2 * static_cast<std::int32_t>(cluster_.edges.size()) + v;
  }

  Cluster cluster_;
  Graph graph_;
  std::vector<std::int32_t> gpu_vertices_;  // by GPU
  std::vector<std::int32_t> gpu_index_;     // by vertex
  std::vector<std::int32_t> local_index_;   // by GPU: its place in its machine
  std::vector<std::int32_t> gpus_in_node_;
  std::vector<std::vector<std::int32_t>> nics_;  // by machine
  mutable std::map<std::pair<std::int32_t, std::int32_t>, std::optional<std::vector<std::int32_t>>>
      switch_ways_;
};

Topology::Topology(const Cluster& cluster) : impl_(std::make_unique<Impl>(cluster)) {}
Topology::Topology(Topology&&) noexcept = default;
Topology::~Topology() = default;

std::int32_t Topology::gpus() const { return static_cast<std::int32_t>(impl_->gpu_vertices_.size()); }

std::int32_t Topology::node_of(std::int32_t gpu) const {
  return impl_->vertex(impl_->gpu_vertices_[static_cast<std::size_t>(gpu)]).node;
}

bool Topology::has_nvlink(std::int32_t gpu) const {
  const auto v = static_cast<std::size_t>(impl_->gpu_vertices_[static_cast<std::size_t>(gpu)]);
  const auto [first, last] = boost::out_edges(v, impl_->graph_);
  return std::any_of(first, last, [&](const auto& e) { return impl_->is_nvlink(impl_->graph_[e].edge); });
}

std::int32_t Topology::nics_of_node(std::int32_t node) const {
  return node < 0 ? 0 : static_cast<std::int32_t>(impl_->nics_[static_cast<std::size_t>(node)].size());
}

std::optional<Route> Topology::route(std::int32_t from, std::int32_t to) const {
  const std::int32_t a = impl_->gpu_vertices_[static_cast<std::size_t>(from)];
  const std::int32_t b = impl_->gpu_vertices_[static_cast<std::size_t>(to)];
  const auto edges = impl_->way(a, b);
  if (!edges) return std::nullopt;
  return impl_->uses_of(a, *edges);
}

std::int32_t Topology::constraint_count() const {
  return static_cast<std::int32_t>(2 * impl_->cluster_.edges.size() + impl_->cluster_.vertices.size());
}

LinkClass Topology::class_of(std::int32_t constraint) const {
  const std::size_t c = static_cast<std::size_t>(constraint);
  const std::size_t edges = impl_->cluster_.edges.size();
  if (c < 2 * edges) return impl_->cluster_.edges[c / 2].link.link_class;
  // Copies staged through a host bridge's memory get what the host gives; peers only pass through it.
  return impl_->cluster_.peer_to_peer ? LinkClass::memory : LinkClass::host;
}

Bandwidth Topology::bandwidth_of(std::int32_t constraint) const {
  const std::size_t c = static_cast<std::size_t>(constraint);
  const std::size_t edges = impl_->cluster_.edges.size();
  return c < 2 * edges ? impl_->cluster_.edges[c / 2].link.bandwidth
                       : impl_->cluster_.vertices[c - 2 * edges].capacity;
}

double Topology::egress_bytes_per_s(std::int32_t gpu, const Profile& profile) const {
  const auto v = static_cast<std::size_t>(impl_->gpu_vertices_[static_cast<std::size_t>(gpu)]);
  const auto [first, last] = boost::out_edges(v, impl_->graph_);
  double sum = 0;
  for (auto it = first; it != last; ++it) {
    const LinkSpec& link = impl_->cluster_.edges[static_cast<std::size_t>(impl_->graph_[*it].edge)].link;
    sum += capacity_bytes_per_s(link.link_class, link.bandwidth, profile);
  }
  return sum;
}

double capacity_bytes_per_s(LinkClass link_class, Bandwidth bandwidth, const Profile& profile) {
  const double datasheet = bandwidth.bytes_per_s();
  switch (link_class) {
    case LinkClass::pcie:
      return datasheet * profile[ParameterId::pcie_efficiency];
    case LinkClass::nvlink:
      return datasheet * profile[ParameterId::nvlink_efficiency];
    case LinkClass::network:
      return datasheet * profile[ParameterId::network_efficiency];
    case LinkClass::memory:
      return datasheet;
    case LinkClass::host:
      break;
  }
  const ParameterValue& bridge = profile.at(ParameterId::host_bridge_gb_per_s);
  if (bridge.provenance == "default") return datasheet;
  return bridge.value * 1e9;
}

}  // namespace foretrain
