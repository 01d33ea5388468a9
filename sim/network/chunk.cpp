#include "sim/network/chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/network/collective_cost_bounds.h"
#include "sim/network/flows.h"

namespace foretrain {
namespace {

constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

// Picoseconds for `bytes` on each edge.
std::vector<std::int64_t> times_of(double bytes, std::span<const ChunkEdge> edges) {
  std::vector<std::int64_t> times;
  times.reserve(edges.size());
  for (const ChunkEdge& edge : edges) {
    times.push_back(edge.bytes_per_s > 0 ? detail::ceil_ps(bytes / edge.bytes_per_s).ps() : kEndless);
  }
  return times;
}

bool endless(std::span<const std::int64_t> times, double items) {
  for (const std::int64_t t : times) {
    if (t == kEndless || static_cast<double>(t) * items > 4e18) return true;
  }
  return false;
}

// Into how many chunks a step's bytes are cut.
std::int64_t chunks_of(double bytes, std::int64_t chunk_bytes, double transfers_per_chunk) {
  const double wanted = std::ceil(bytes / static_cast<double>(std::max<std::int64_t>(1, chunk_bytes)));
  const double most = std::max(1.0, static_cast<double>(kMostTransfers) / std::max(1.0, transfers_per_chunk));
  return static_cast<std::int64_t>(std::clamp(wanted, 1.0, most));
}

// Chunks that pass all edges one after the other.
ChunkRun simulate_chain(double bytes, std::span<const ChunkEdge> edges, std::int64_t chunk_bytes) {
  const std::int64_t chunks = chunks_of(bytes, chunk_bytes, static_cast<double>(edges.size()));
  const std::vector<std::int64_t> times = times_of(bytes / static_cast<double>(chunks), edges);
  if (endless(times, static_cast<double>(chunks) + static_cast<double>(edges.size())))
    return {Time::max(), 0};
  std::vector<std::int64_t> free(edges.size(), 0);
  std::int64_t last = 0;
  for (std::int64_t k = 0; k < chunks; ++k) {
    std::int64_t arrived = 0;
    for (std::size_t e = 0; e < edges.size(); ++e) {
      free[e] = std::max(free[e], arrived) + times[e];
      arrived = free[e] + edges[e].latency.ps();
    }
    last = std::max(last, arrived);
  }
  return {Time::from_ps(last), chunks * static_cast<std::int64_t>(edges.size())};
}

// NCCL halves the chunks of pipelines until there are eight for every hop (src/enqueue.cc), but not below 64
// KiB.
std::int64_t pipeline_chunk(double bytes, std::int64_t hops) {
  constexpr std::int64_t kLeast = 65536;
  const double wanted = bytes / (8.0 * static_cast<double>(std::max<std::int64_t>(1, hops)));
  if (!(wanted < static_cast<double>(kChunkBytes))) return kChunkBytes;
  return std::max(kLeast, static_cast<std::int64_t>(wanted));
}

}  // namespace

ChunkRun simulate_ring(CollectiveKind kind, double bytes, std::int32_t ranks,
                       std::span<const ChunkEdge> edges, std::int64_t chunk_bytes) {
  if (ranks < 2 || !(bytes > 0) || edges.empty()) return {};
  if (kind == CollectiveKind::all_to_all) {
    const std::vector<std::int64_t> times = times_of(bytes / ranks, edges);
    if (endless(times, 1)) return {Time::max(), 0};
    std::int64_t last = 0;
    for (std::size_t e = 0; e < edges.size(); ++e) last = std::max(last, times[e] + edges[e].latency.ps());
    return {Time::from_ps(last), static_cast<std::int64_t>(edges.size())};
  }
  const bool reduces_or_gathers = kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
                                  kind == CollectiveKind::reduce_scatter;
  if (!reduces_or_gathers) return simulate_chain(bytes, edges, chunk_bytes);

  const std::size_t n = edges.size();
  const std::int32_t steps = ring_steps(kind, ranks);
  const double piece = bytes / ranks;  // what a rank sends per step
  const std::int64_t chunks =
      chunks_of(piece, chunk_bytes, static_cast<double>(n) * static_cast<double>(steps));
  const std::vector<std::int64_t> times = times_of(piece / static_cast<double>(chunks), edges);
  if (endless(times, static_cast<double>(chunks) * steps * 2)) return {Time::max(), 0};
  std::vector<std::int64_t> latency(n);
  for (std::size_t e = 0; e < n; ++e) latency[e] = edges[e].latency.ps();
  // Arrivals at the head of edge e are at [c][e + 1], so that the tail of edge e reads [c][e]; [c][0] repeats
  // the last edge's.
  const std::size_t row = n + 1;
  std::vector<std::int64_t> before, after;
  std::vector<std::int64_t> free(n, 0);
  std::int64_t last = 0;
  // NCCL goes round the ring with two chunks at a time, then with the next two.
  for (std::int64_t first = 0; first < chunks; first += 2) {
    const auto width = static_cast<std::size_t>(std::min<std::int64_t>(2, chunks - first));
    before.assign(width * row, 0);
    after.assign(width * row, 0);
    for (std::int32_t s = 0; s < steps; ++s) {
      for (std::size_t c = 0; c < width; ++c) {
        const std::int64_t* ready = before.data() + c * row;
        std::int64_t* arrives = after.data() + c * row;
        for (std::size_t e = 0; e < n; ++e) {
          const std::int64_t end = std::max(free[e], ready[e]) + times[e];
          free[e] = end;
          arrives[e + 1] = end + latency[e];
        }
        arrives[0] = arrives[n];
      }
      before.swap(after);
    }
    for (const std::int64_t t : before) last = std::max(last, t);
  }
  return {Time::from_ps(last), chunks * steps * static_cast<std::int64_t>(n)};
}

ChunkRun simulate_tree(CollectiveKind kind, double bytes, std::span<const std::int32_t> parents,
                       std::span<const ChunkEdge> up, std::span<const ChunkEdge> down,
                       std::int64_t chunk_bytes) {
  const std::size_t n = parents.size();
  const bool goes_up = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce;
  const bool goes_down = kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
  if (n < 2 || !(bytes > 0) || (!goes_up && !goes_down)) return {};
  // Vertices by depth, the root first.
  std::vector<std::int32_t> depth(n, 0);
  std::vector<std::size_t> order(n);
  for (std::size_t v = 0; v < n; ++v) {
    order[v] = v;
    for (std::int32_t p = parents[v]; p >= 0; p = parents[static_cast<std::size_t>(p)]) ++depth[v];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return depth[x] < depth[y]; });

  const std::int64_t ways = (goes_up ? 1 : 0) + (goes_down ? 1 : 0);
  const std::int64_t edges = static_cast<std::int64_t>(n - 1) * ways;
  const std::int64_t chunks = chunks_of(bytes, chunk_bytes, static_cast<double>(edges));
  const double each = bytes / static_cast<double>(chunks);
  std::vector<std::int64_t> up_times(n, 0), down_times(n, 0);
  if (goes_up) up_times = times_of(each, up);
  if (goes_down) down_times = times_of(each, down);
  for (std::size_t v = 0; v < n; ++v) {
    if (parents[v] < 0) up_times[v] = down_times[v] = 0;
  }
  const double items = static_cast<double>(chunks) * 2 + 2 * static_cast<double>(n);
  if (endless(up_times, items) || endless(down_times, items)) return {Time::max(), 0};

  std::vector<std::int64_t> up_free(n, 0), down_free(n, 0), there(n);
  std::int64_t last = 0;
  for (std::int64_t k = 0; k < chunks; ++k) {
    std::fill(there.begin(), there.end(), 0);  // when the chunk of v and all below it has come together
    std::int64_t at_root = 0;
    for (std::size_t i = n; i-- > 0;) {
      const std::size_t v = order[i];
      const std::int32_t parent = parents[v];
      if (parent < 0) {
        at_root = there[v];
      } else if (goes_up) {
        up_free[v] = std::max(up_free[v], there[v]) + up_times[v];
        std::int64_t& above = there[static_cast<std::size_t>(parent)];
        above = std::max(above, up_free[v] + up[v].latency.ps());
      }
    }
    last = std::max(last, at_root);
    if (!goes_down) continue;
    for (const std::size_t v : order) {
      const std::int32_t parent = parents[v];
      if (parent < 0) {
        there[v] = at_root;
        continue;
      }
      down_free[v] = std::max(down_free[v], there[static_cast<std::size_t>(parent)]) + down_times[v];
      there[v] = down_free[v] + down[v].latency.ps();
      last = std::max(last, there[v]);
    }
  }
  return {Time::from_ps(last), chunks * edges};
}

ChunkModel::ChunkModel(const Cluster& cluster) : topology_(cluster) {}

ChunkRun ChunkModel::run(const PatternKey& pattern, const TransferPlan& plan, Bytes payload,
                         const Profile& profile) const {
  if (pattern.groups.empty() || payload.count() <= 0) return {};
  const auto ranks = static_cast<std::int32_t>(pattern.groups.front().size());
  if (ranks < 2) return {};
  const bool tree = plan.algorithm == Algorithm::tree;
  // What all groups together put on every link, per byte of payload.
  std::map<std::int32_t, double> loads;
  std::vector<Flow> mine;
  for (std::size_t g = 0; g < pattern.groups.size(); ++g) {
    std::vector<Flow> flows = tree ? tree_flows(pattern.kind, pattern.groups[g], topology_)
                                   : ring_flows(pattern.kind, pattern.groups[g], topology_);
    for (const Flow& flow : flows) {
      const auto route = topology_.route(flow.from, flow.to);
      if (!route) return {Time::max(), 0};
      for (const RouteUse& use : *route) loads[use.constraint] += flow.share * use.times;
    }
    if (g == 0) mine = std::move(flows);
  }
  // The plan's latency is that of its start and its steps.
  const Time fixed = std::min(plan.latency, Time::from_us(profile[ParameterId::collective_latency_us]));
  const Time hop = Time::from_ps((plan.latency - fixed).ps() / (std::max(1, plan.steps) + 1));
  const auto edge_of = [&](const Flow& flow) {
    double payload_rate =
        plan.rate_cap_bytes_per_s > 0 ? plan.rate_cap_bytes_per_s : std::numeric_limits<double>::infinity();
    const auto route = topology_.route(flow.from, flow.to);
    for (const RouteUse& use : *route) {
      const double capacity = capacity_bytes_per_s(topology_.class_of(use.constraint),
                                                   topology_.bandwidth_of(use.constraint), profile);
      payload_rate = std::min(payload_rate, capacity / loads[use.constraint]);
    }
    return ChunkEdge{flow.share * payload_rate, hop};
  };

  const double bytes = static_cast<double>(payload.count());
  ChunkRun result;
  const auto add = [&result](const ChunkRun& part) {  // of parts that run side by side
    result.total = std::max(result.total, part.total);
    result.transfers += part.transfers;
  };
  if (tree) {
    const bool both = pattern.kind == CollectiveKind::all_reduce;
    const std::size_t ways = both ? 2 : 1;
    const std::size_t per_tree = static_cast<std::size_t>(ranks - 1) * ways;
    std::map<std::int32_t, std::size_t> vertex;
    for (std::size_t i = 0; i < pattern.groups.front().size(); ++i) {
      vertex.emplace(pattern.groups.front()[i].value, i);
    }
    for (std::size_t t = 0; t + per_tree <= mine.size(); t += per_tree) {
      std::vector<std::int32_t> parents(static_cast<std::size_t>(ranks), -1);
      std::vector<ChunkEdge> up(parents.size()), down(parents.size());
      for (std::size_t i = t; i < t + per_tree; i += ways) {
        const bool upwards = pattern.kind != CollectiveKind::broadcast;
        const std::size_t child = vertex.at(upwards ? mine[i].from : mine[i].to);
        parents[child] = static_cast<std::int32_t>(vertex.at(upwards ? mine[i].to : mine[i].from));
        if (upwards) up[child] = edge_of(mine[i]);
        if (!upwards) down[child] = edge_of(mine[i]);
        if (both) down[child] = edge_of(mine[i + 1]);
      }
      const std::int64_t chunk = pipeline_chunk(bytes / 2, std::max(1, plan.steps / 2));
      add(simulate_tree(pattern.kind, bytes / 2, parents, up, down, chunk));
    }
  } else {
    const bool chain = pattern.kind == CollectiveKind::broadcast || pattern.kind == CollectiveKind::reduce;
    std::size_t per_ring = static_cast<std::size_t>(chain ? ranks - 1 : ranks);
    if (pattern.kind == CollectiveKind::send_recv || pattern.kind == CollectiveKind::all_to_all) {
      per_ring = mine.size();
    }
    const std::size_t whole_rings = mine.size() / std::max<std::size_t>(1, per_ring);
    const double rings = static_cast<double>(whole_rings);
    for (std::size_t r = 0; r + per_ring <= mine.size(); r += per_ring) {
      std::vector<ChunkEdge> edges;
      edges.reserve(per_ring);
      for (std::size_t i = r; i < r + per_ring; ++i) edges.push_back(edge_of(mine[i]));
      const std::int64_t chunk =
          chain ? pipeline_chunk(bytes / rings, static_cast<std::int64_t>(edges.size())) : kChunkBytes;
      add(simulate_ring(pattern.kind, bytes / rings, ranks, edges, chunk));
    }
  }
  if (result.total < Time::max() - fixed - hop) result.total += fixed + hop;
  return result;
}

}  // namespace foretrain
