#include "sim/network/collective_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/network/collective_cost_bounds.h"
#include "sim/network/collective_cost_constants.h"

namespace foretrain {
namespace {

constexpr double kExposedHop = 0.5;    // of a Simple hop, inside a machine
constexpr double kPipelineFill = 1.0;  // times sqrt(latency * transfer), in trees between machines

// Payload that keeps all threads of a channel busy.
double bytes_per_channel(std::int32_t ranks, Algorithm algorithm, Protocol protocol) {
  const std::size_t p = nccl::index_of(protocol);
  const double bytes = nccl::kThreadThresholdBytes[p] * nccl::kThreads[p];
  return algorithm == Algorithm::ring && protocol == Protocol::ll ? bytes * ranks : bytes;
}

// One way to do it, in seconds.
struct Candidate {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::int32_t steps = 0;
  double channels = 1;
  double total_s = 0;
  double bandwidth_s = 0;
};

// At most ring and tree with two protocols each, and nvls.
struct CandidateList {
  std::array<Candidate, 5> items;
  std::size_t count = 0;
  void add(const Candidate& candidate) { items[count++] = candidate; }
};

struct Input {
  CollectiveKind kind;
  double bytes;
  CollectiveGroup group;
  CollectiveParameters parameters;

  // Channels in use, as a fraction so that more bytes never take less time.
  double channels(Algorithm algorithm, Protocol protocol) const {
    return std::clamp(bytes / bytes_per_channel(group.ranks, algorithm, protocol), 1.0,
                      static_cast<double>(parameters.max_channels));
  }
  // Bytes / s that a protocol reaches: the ports, or the channels in use.
  double rate(double channels) const {
    const double ports = parameters.bus_bandwidth.bytes_per_s();
    const double channel = parameters.channel_bandwidth.bytes_per_s();
    return channel > 0 ? std::min(ports, channel * channels) : ports;
  }
};

// Latency of a ring in NCCL's tuner: base, and hops of which those between machines cost more.
double ring_hops_us(const Input& in, Protocol protocol) {
  const std::size_t p = nccl::index_of(protocol);
  const std::int32_t steps = ring_steps(in.kind, in.group.ranks);
  const double inside = (in.group.nvlink ? nccl::kNvlinkHop : nccl::kPcieHop).ring_us[p];
  if (in.group.nodes == 1) return steps * inside;
  std::int32_t between = in.group.nodes - 1;
  if (in.kind == CollectiveKind::all_reduce) between *= 2;
  between = std::min(between, steps);
  // With one rank per machine the network's latency is fully exposed, as in a tree.
  const auto& network =
      in.group.ranks == in.group.nodes ? nccl::kNetworkHop.tree_us : nccl::kNetworkHop.ring_us;
  return (steps - between) * std::max(inside, nccl::kNetworkPostUs) + between * network[p];
}

double tree_hops_us(const Input& in, Protocol protocol) {
  const std::size_t p = nccl::index_of(protocol);
  const double inside = (in.group.nvlink ? nccl::kNvlinkHop : nccl::kPcieHop).tree_us[p];
  const double per_node = static_cast<double>(in.group.ranks) / in.group.nodes;
  return 2 * ((per_node - 1) * inside + std::log2(in.group.nodes) * nccl::kNetworkHop.tree_us[p]);
}

void add_one_machine(const Input& in, CandidateList& list) {
  const double scale_s = in.parameters.latency_scale * 1e-6;
  const double work = bus_factor(in.kind, in.group.ranks) * in.bytes;
  const std::int32_t steps = ring_steps(in.kind, in.group.ranks);
  {
    const double channels = in.channels(Algorithm::ring, Protocol::ll);
    const double moved = in.parameters.protocol_ratio * work / in.rate(channels);
    const double base = scale_s * nccl::kRingBaseUs[nccl::index_of(Protocol::ll)];
    const double total = base + std::hypot(scale_s * ring_hops_us(in, Protocol::ll), moved);
    list.add({Algorithm::ring, Protocol::ll, steps, channels, total, moved});
  }
  {
    const double channels = in.channels(Algorithm::ring, Protocol::simple);
    const double moved = work / in.rate(channels);
    const double base = nccl::kRingBaseUs[nccl::index_of(Protocol::simple)];
    const double total = scale_s * (base + kExposedHop * ring_hops_us(in, Protocol::simple)) + moved;
    list.add({Algorithm::ring, Protocol::simple, steps, channels, total, moved});
  }
}

// Both protocols of one algorithm between machines. `efficiency` is of the bus bandwidth.
void add_between_machines(const Input& in, Algorithm algorithm, double latency_s, double efficiency,
                          std::int32_t steps, CandidateList& list) {
  const Protocol low = in.group.nvlink ? Protocol::ll128 : Protocol::ll;
  const double ratio = in.parameters.protocol_ratio;
  const double work = bus_factor(in.kind, in.group.ranks) * in.bytes / efficiency;
  {
    const double channels = in.channels(algorithm, low);
    const double moved = work / in.rate(channels);
    const double fill = algorithm == Algorithm::tree ? kPipelineFill * std::sqrt(latency_s * moved) : 0;
    list.add({algorithm, low, steps, channels, latency_s + ratio * moved + fill, ratio * moved});
  }
  {
    const double channels = in.channels(algorithm, Protocol::simple);
    const double moved = work / in.rate(channels);
    list.add({algorithm, Protocol::simple, steps, channels, ratio * latency_s + moved, moved});
  }
}

void add_many_machines(const Input& in, CandidateList& list) {
  const std::size_t ll = nccl::index_of(Protocol::ll);
  const double scale_s = in.parameters.latency_scale * 1e-6;
  const double ring_s = scale_s * (nccl::kRingBaseUs[ll] + ring_hops_us(in, Protocol::ll));
  add_between_machines(in, Algorithm::ring, ring_s, 1.0, ring_steps(in.kind, in.group.ranks), list);
  if (in.kind != CollectiveKind::all_reduce) return;
  const double tree_s = scale_s * (nccl::kTreeBaseUs[ll] + tree_hops_us(in, Protocol::ll));
  const std::int32_t steps =
      2 * (in.group.ranks / in.group.nodes - 1 + tree_depth(in.group.nodes));  // chain inside, tree between
  add_between_machines(in, Algorithm::tree, tree_s, nccl::kTreeBandwidth, steps, list);
}

// NVLS: the switch reduces and multicasts; one hop up, one down.
void add_in_switch(const Input& in, CandidateList& list) {
  double latency_us = nccl::kNvlinkHop.nvls_us;
  if (in.group.nodes > 1) latency_us += nccl::kNetworkHop.nvls_us;
  const double n = in.group.ranks;
  const double channels = in.channels(Algorithm::nvls, Protocol::simple);
  const double moved = (n + 1) / n * in.bytes / (nccl::kNvlsBandwidth * in.rate(channels));
  list.add({Algorithm::nvls, Protocol::simple, 2, channels,
            in.parameters.latency_scale * latency_us * 1e-6 + moved, moved});
}

CandidateList all_candidates(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                             const CollectiveParameters& parameters) {
  CandidateList list;
  if (group.ranks <= 1 || !(bytes > 0)) return list;
  Input in{kind, bytes, group, parameters};
  in.group.nodes = std::clamp(group.nodes, 1, group.ranks);
  in.parameters.protocol_ratio = std::max(1.0, parameters.protocol_ratio);
  in.parameters.latency_scale = std::max(0.0, parameters.latency_scale);
  in.parameters.max_channels = std::max(1, parameters.max_channels);
  if (in.group.nodes == 1) {
    add_one_machine(in, list);
  } else {
    add_many_machines(in, list);
  }
  if (group.in_switch_reduce && kind == CollectiveKind::all_reduce && group.ranks > 2)
    add_in_switch(in, list);
  return list;
}

Bytes wire_bytes(CollectiveKind kind, double bytes, std::int32_t ranks, const Candidate& candidate) {
  const double n = ranks;
  // A tree has n-1 edges that carry the payload up and down: as much per rank as a ring, on average.
  double factor = bus_factor(kind, ranks);
  if (candidate.algorithm == Algorithm::nvls) factor = (n + 1) / n;
  return Bytes(static_cast<std::int64_t>(
      std::ceil(factor * bytes * nccl::kWireExpansion[nccl::index_of(candidate.protocol)])));
}

CollectiveTime rounded(CollectiveKind kind, double bytes, std::int32_t ranks, const Candidate& candidate) {
  CollectiveTime time;
  time.algorithm = candidate.algorithm;
  time.protocol = candidate.protocol;
  time.steps = candidate.steps;
  time.channels = static_cast<std::int32_t>(candidate.channels);
  time.wire_bytes_per_rank = wire_bytes(kind, bytes, ranks, candidate);
  const double latency_s = std::max(0.0, candidate.total_s - candidate.bandwidth_s);
  time.bandwidth = detail::ceil_ps(candidate.bandwidth_s);
  time.latency = std::isfinite(latency_s) ? Time::from_seconds(latency_s) : Time{};
  const bool endless = time.bandwidth == Time::max() || time.latency > Time::max() - time.bandwidth;
  time.total = endless ? Time::max() : time.latency + time.bandwidth;
  return time;
}

const Candidate* cheapest(const CandidateList& list) {
  const Candidate* best = nullptr;
  for (std::size_t i = 0; i < list.count; ++i) {
    if (best == nullptr || list.items[i].total_s < best->total_s) best = &list.items[i];
  }
  return best;
}

// Rates that are not positive make a transfer endless; the arithmetic then needs a zero rate.
CollectiveParameters with_sane_rate(CollectiveParameters parameters) {
  if (!(parameters.bus_bandwidth.bytes_per_s() > 0)) parameters.bus_bandwidth = Bandwidth{};
  return parameters;
}

}  // namespace

std::vector<CollectiveTime> candidates(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group,
                                       const CollectiveParameters& parameters) {
  const double payload = static_cast<double>(bytes.count());
  const CandidateList list = all_candidates(kind, payload, group, with_sane_rate(parameters));
  std::vector<CollectiveTime> result;
  for (std::size_t i = 0; i < list.count; ++i) {
    result.push_back(rounded(kind, payload, group.ranks, list.items[i]));
  }
  return result;
}

CollectiveTime cost(CollectiveKind kind, Bytes bytes, const CollectiveGroup& group,
                    const CollectiveParameters& parameters) {
  const double payload = static_cast<double>(bytes.count());
  const CandidateList list = all_candidates(kind, payload, group, with_sane_rate(parameters));
  const Candidate* best = cheapest(list);
  return best == nullptr ? CollectiveTime{} : rounded(kind, payload, group.ranks, *best);
}

double cost_seconds(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                    const CollectiveParameters& parameters) {
  const CandidateList list = all_candidates(kind, bytes, group, with_sane_rate(parameters));
  const Candidate* best = cheapest(list);
  return best == nullptr ? 0.0 : best->total_s;
}

std::int32_t channels_for(Bytes bytes, std::int32_t ranks, Algorithm algorithm, Protocol protocol,
                          std::int32_t max_channels) {
  const double fitting =
      std::floor(static_cast<double>(bytes.count()) / bytes_per_channel(ranks, algorithm, protocol));
  const double most = std::max(1, max_channels);
  return static_cast<std::int32_t>(std::clamp(fitting, 1.0, most));
}

}  // namespace foretrain
