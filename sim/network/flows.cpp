#include "sim/network/flows.h"

#include <algorithm>
#include <map>

namespace foretrain {
namespace {

// The group's ranks machine by machine, machines and ranks in ascending order.
std::vector<std::vector<std::int32_t>> by_machine(const std::vector<Rank>& group, const Topology& topology) {
  std::map<std::int32_t, std::vector<std::int32_t>> machines;
  for (const Rank rank : group) machines[topology.node_of(rank.value)].push_back(rank.value);
  std::vector<std::vector<std::int32_t>> result;
  for (auto& [node, ranks] : machines) {
    std::sort(ranks.begin(), ranks.end());
    result.push_back(std::move(ranks));
  }
  return result;
}

double ring_share(CollectiveKind kind, double n) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

}  // namespace

std::vector<Flow> ring_flows(CollectiveKind kind, const std::vector<Rank>& group, const Topology& topology) {
  std::vector<Flow> flows;
  const std::size_t n = group.size();
  if (n < 2) return flows;
  if (kind == CollectiveKind::send_recv) return {Flow{group[0].value, group[1].value, 1.0}};
  if (kind == CollectiveKind::all_to_all) {
    for (const Rank a : group) {
      for (const Rank b : group) {
        if (a != b) flows.push_back(Flow{a.value, b.value, 1.0 / static_cast<double>(n)});
      }
    }
    return flows;
  }
  const auto machines = by_machine(group, topology);
  std::size_t rings = 1;
  if (machines.size() > 1) {
    rings = SIZE_MAX;
    for (const auto& ranks : machines) {
      const std::size_t nics =
          static_cast<std::size_t>(std::max(1, topology.nics_of_node(topology.node_of(ranks[0]))));
      rings = std::min({rings, ranks.size(), nics});
    }
  }
  const double share = ring_share(kind, static_cast<double>(n)) / static_cast<double>(rings);
  const bool chain = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  for (std::size_t r = 0; r < rings; ++r) {
    std::vector<std::int32_t> order;
    for (const auto& ranks : machines) {
      // Turned so that ring r enters a machine at the first GPU of the r-th share.
      const std::size_t start = r * ranks.size() / rings;
      for (std::size_t i = 0; i < ranks.size(); ++i) order.push_back(ranks[(start + i) % ranks.size()]);
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (chain && i + 1 == n) break;
      flows.push_back(Flow{order[i], order[(i + 1) % n], share});
    }
  }
  return flows;
}

std::vector<std::int32_t> binary_tree_parents(std::int32_t n) {
  // Node v with lowest set bit b has the parent (v ^ b) | (b << 1), drawn back below n; 0 is the root.
  std::vector<std::int32_t> parents(static_cast<std::size_t>(n), -1);
  for (std::int32_t v = 1; v < n; ++v) {
    std::int32_t bit = v & -v;
    std::int32_t parent = (v ^ bit) | (bit << 1);
    if (parent >= n) parent = v ^ bit;
    parents[static_cast<std::size_t>(v)] = parent;
  }
  return parents;
}

std::vector<Flow> tree_flows(CollectiveKind kind, const std::vector<Rank>& group, const Topology& topology) {
  std::vector<Flow> flows;
  const bool up = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce;
  const bool down = kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
  if (group.size() < 2 || (!up && !down)) return flows;
  const auto machines = by_machine(group, topology);
  const auto add = [&](std::int32_t child, std::int32_t parent, double share) {
    if (up) flows.push_back(Flow{child, parent, share});
    if (down) flows.push_back(Flow{parent, child, share});
  };
  const std::int32_t m = static_cast<std::int32_t>(machines.size());
  const std::vector<std::int32_t> parents = binary_tree_parents(m);
  for (int tree = 0; tree < 2; ++tree) {
    // The second tree is the first shifted by one machine, so that inner nodes of one are leaves of the
    // other.
    const auto machine = [&](std::int32_t v) { return static_cast<std::size_t>((v + tree) % m); };
    const auto leader = [&](std::size_t i) {
      const auto& ranks = machines[i];
      return ranks[static_cast<std::size_t>(tree) * ranks.size() / 2];
    };
    for (std::int32_t v = 0; v < m; ++v) {
      const std::int32_t parent = parents[static_cast<std::size_t>(v)];
      if (parent >= 0) add(leader(machine(v)), leader(machine(parent)), 0.5);
      const auto& ranks = machines[machine(v)];
      const std::size_t start = static_cast<std::size_t>(tree) * ranks.size() / 2;
      for (std::size_t i = 1; i < ranks.size(); ++i) {
        add(ranks[(start + i) % ranks.size()], ranks[(start + i - 1) % ranks.size()], 0.5);
      }
    }
  }
  return flows;
}

}  // namespace foretrain
