#include "sim/network/pattern.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "sim/network/collective_cost.h"
#include "sim/network/collective_cost_bounds.h"
#include "sim/network/flows.h"
#include "sim/network/topology.h"

namespace foretrain {
namespace {

constexpr std::size_t kAlgorithms = 2;  // ring, tree

struct Pattern {
  PatternKey key;
  CollectiveGroup group;
  std::array<std::vector<PatternSet::Use>, kAlgorithms> uses;
  std::vector<std::int32_t> ports;  // a GPU of every distinct egress capacity that takes part
};

}  // namespace

class PatternSet::Impl {
 public:
  explicit Impl(const Cluster& cluster) : topology(cluster) {}

  tl::expected<std::vector<Use>, std::string> load(const std::vector<Flow>& flows) {
    std::map<std::int32_t, double> loads;
    for (const Flow& flow : flows) {
      const auto key = std::pair(flow.from, flow.to);
      auto known = routes.find(key);
      if (known == routes.end()) known = routes.emplace(key, topology.route(flow.from, flow.to)).first;
      if (!known->second) {
        return tl::unexpected(fmt::format("rank {} and rank {} are not connected", flow.from, flow.to));
      }
      for (const RouteUse& use : *known->second) loads[use.constraint] += flow.share * use.times;
    }
    std::vector<Use> uses;
    uses.reserve(loads.size());
    for (const auto& [constraint, bytes] : loads) uses.push_back(Use{constraint, bytes});
    return uses;
  }

  const Pattern& at(std::int32_t pattern) const { return patterns[static_cast<std::size_t>(pattern)]; }

  double capacity(std::int32_t constraint, const Profile& profile) const {
    const Limit& limit = limits[static_cast<std::size_t>(constraint)];
    return capacity_bytes_per_s(limit.link_class, limit.bandwidth, profile);
  }

  // Payload bytes per second that the idle network allows.
  double idle_rate(const Pattern& pattern, std::size_t algorithm, const Profile& profile) const {
    double rate = std::numeric_limits<double>::infinity();
    for (const Use& use : pattern.uses[algorithm]) {
      rate = std::min(rate, capacity(use.constraint, profile) / use.bytes_per_work_byte);
    }
    return rate;
  }

  struct Limit {
    LinkClass link_class;
    Bandwidth bandwidth;
  };
  Topology topology;
  std::vector<Pattern> patterns;
  std::vector<Limit> limits;  // of the compressed constraints
  std::map<std::pair<std::int32_t, std::int32_t>, std::optional<Route>> routes;
  std::map<std::pair<CollectiveKind, std::vector<std::vector<Rank>>>, std::int32_t> index;
  bool compressed = false;
};

PatternSet::PatternSet(const Cluster& cluster) : impl_(std::make_unique<Impl>(cluster)) {}
PatternSet::PatternSet(PatternSet&&) noexcept = default;
PatternSet::~PatternSet() = default;

tl::expected<std::int32_t, std::string> PatternSet::add(const PatternKey& key) {
  const auto known = impl_->index.find({key.kind, key.groups});
  if (known != impl_->index.end()) return known->second;
  Pattern pattern;
  pattern.key = key;
  std::array<std::vector<Flow>, kAlgorithms> flows;
  for (const std::vector<Rank>& group : key.groups) {
    for (const Rank rank : group) {
      if (rank.value < 0 || rank.value >= impl_->topology.gpus()) {
        return tl::unexpected(
            fmt::format("rank {} has no GPU; the cluster has {}", rank.value, impl_->topology.gpus()));
      }
    }
    const std::vector<Flow> ring = ring_flows(key.kind, group, impl_->topology);
    const std::vector<Flow> tree = tree_flows(key.kind, group, impl_->topology);
    flows[0].insert(flows[0].end(), ring.begin(), ring.end());
    flows[1].insert(flows[1].end(), tree.begin(), tree.end());
  }
  for (std::size_t a = 0; a < kAlgorithms; ++a) {
    auto uses = impl_->load(flows[a]);
    if (!uses) return tl::unexpected(uses.error());
    pattern.uses[a] = std::move(*uses);
  }
  if (!key.groups.empty()) {
    const std::vector<Rank>& group = key.groups.front();
    std::vector<std::int32_t> nodes;
    bool nvlink = true;
    for (const Rank rank : group) {
      nodes.push_back(impl_->topology.node_of(rank.value));
      nvlink = nvlink && impl_->topology.has_nvlink(rank.value);
      pattern.ports.push_back(rank.value);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    pattern.group.ranks = static_cast<std::int32_t>(group.size());
    pattern.group.nodes = static_cast<std::int32_t>(nodes.size());
    pattern.group.nvlink = nvlink;
  }
  const std::int32_t id = static_cast<std::int32_t>(impl_->patterns.size());
  impl_->patterns.push_back(std::move(pattern));
  impl_->index.emplace(std::pair(key.kind, key.groups), id);
  return id;
}

void PatternSet::compress() {
  if (impl_->compressed) return;
  impl_->compressed = true;
  impl_->routes.clear();
  // For every link: what each pattern puts on it. Links of equal class, bandwidth and loads are one
  // constraint.
  struct Load {
    std::int32_t pattern;
    std::int32_t algorithm;
    double bytes;
    auto operator<=>(const Load&) const = default;
  };
  std::map<std::int32_t, std::vector<Load>> loads;
  for (std::size_t p = 0; p < impl_->patterns.size(); ++p) {
    for (std::size_t a = 0; a < kAlgorithms; ++a) {
      for (const Use& use : impl_->patterns[p].uses[a]) {
        loads[use.constraint].push_back(
            Load{static_cast<std::int32_t>(p), static_cast<std::int32_t>(a), use.bytes_per_work_byte});
      }
      impl_->patterns[p].uses[a].clear();
    }
  }
  using Key = std::tuple<LinkClass, double, std::vector<Load>>;
  std::map<Key, std::int32_t> distinct;
  for (auto& [constraint, list] : loads) {
    const LinkClass link_class = impl_->topology.class_of(constraint);
    const Bandwidth bandwidth = impl_->topology.bandwidth_of(constraint);
    const auto [it, fresh] = distinct.emplace(Key{link_class, bandwidth.bytes_per_s(), list},
                                              static_cast<std::int32_t>(impl_->limits.size()));
    if (!fresh) continue;
    impl_->limits.push_back(Impl::Limit{link_class, bandwidth});
    for (const Load& load : list) {
      impl_->patterns[static_cast<std::size_t>(load.pattern)]
          .uses[static_cast<std::size_t>(load.algorithm)]
          .push_back(Use{it->second, load.bytes});
    }
  }
}

std::int32_t PatternSet::constraint_count() const { return static_cast<std::int32_t>(impl_->limits.size()); }

std::vector<double> PatternSet::capacities(const Profile& profile) const {
  std::vector<double> result;
  for (std::int32_t c = 0; c < constraint_count(); ++c) result.push_back(impl_->capacity(c, profile));
  return result;
}

std::span<const PatternSet::Use> PatternSet::uses(std::int32_t pattern, Algorithm algorithm) const {
  return impl_->at(pattern).uses[algorithm == Algorithm::tree ? 1 : 0];
}

const PatternKey& PatternSet::key(std::int32_t pattern) const { return impl_->at(pattern).key; }

TransferPlan PatternSet::plan(std::int32_t id, Bytes payload, const Profile& profile) const {
  const Pattern& pattern = impl_->at(id);
  TransferPlan result;
  if (pattern.group.ranks < 2 || payload.count() <= 0) return result;
  const double bytes = static_cast<double>(payload.count());
  const double factor = bus_factor(pattern.key.kind, pattern.group.ranks);
  CollectiveParameters parameters;
  const double ring_rate = impl_->idle_rate(pattern, 0, profile);
  parameters.bus_bandwidth = Bandwidth::bytes_per_s(ring_rate * factor);
  double best = std::numeric_limits<double>::infinity();
  for (const CollectiveTime& candidate : candidates(pattern.key.kind, payload, pattern.group, parameters)) {
    if (candidate.algorithm == Algorithm::nvls) continue;
    const bool tree = candidate.algorithm == Algorithm::tree;
    const double idle = impl_->idle_rate(pattern, tree ? 1 : 0, profile);
    if (tree && !std::isfinite(idle)) continue;
    // The cost model knows one bandwidth per machine; the links that this pattern really loads may allow
    // less.
    const double flow = std::max(candidate.bandwidth.seconds(), bytes / idle);
    const double total = candidate.latency.seconds() + flow;
    if (!(total < best)) continue;
    best = total;
    result.algorithm = candidate.algorithm;
    result.protocol = candidate.protocol;
    result.steps = candidate.steps;
    result.latency = candidate.latency;
    result.work_bytes = bytes;
    result.rate_cap_bytes_per_s = bytes / flow;
  }
  // A message of s bytes reaches s / (s + half) of the large-message rate: the pipeline of chunks fills once.
  const double half = profile[ParameterId::half_bandwidth_message_mib] * 1048576.0;
  result.latency += Time::from_us(profile[ParameterId::collective_latency_us]);
  result.latency += Time::from_us(profile[ParameterId::hop_latency_us] * result.steps);
  if (half > 0) result.rate_cap_bytes_per_s *= bytes / (bytes + half);
  return result;
}

Time PatternSet::lower_bound(std::int32_t id, Bytes payload, const Profile& profile) const {
  const Pattern& pattern = impl_->at(id);
  if (pattern.group.ranks < 2) return Time{};
  if (pattern.key.kind == CollectiveKind::send_recv) {
    const double rate = impl_->topology.egress_bytes_per_s(pattern.ports.front(), profile);
    return transfer_time(payload, Bandwidth::bytes_per_s(rate));
  }
  double most = 0;
  for (const std::int32_t gpu : pattern.ports)
    most = std::max(most, impl_->topology.egress_bytes_per_s(gpu, profile));
  return bandwidth_lower_bound(pattern.key.kind, payload, pattern.group.ranks, Bandwidth::bytes_per_s(most));
}

}  // namespace foretrain
