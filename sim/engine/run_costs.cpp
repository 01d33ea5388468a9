#include "sim/engine/run_costs.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "sim/network/chunk.h"

namespace foretrain {
namespace {

// The widest PCIe or host link at a GPU: copies between host memory and the GPU use it.
const LinkSpec* host_link(const Cluster& cluster) {
  const LinkSpec* best = nullptr;
  for (const ClusterEdge& edge : cluster.edges) {
    const bool at_gpu = cluster.vertices[static_cast<std::size_t>(edge.a)].kind == VertexKind::gpu ||
                        cluster.vertices[static_cast<std::size_t>(edge.b)].kind == VertexKind::gpu;
    const bool to_host = edge.link.link_class == LinkClass::pcie || edge.link.link_class == LinkClass::host;
    if (!at_gpu || !to_host) continue;
    if (best == nullptr || edge.link.bandwidth > best->bandwidth) best = &edge.link;
  }
  return best;
}

constexpr double kLongestPs = 4.0e18;

// Makes every exchange take on the idle network what the simulation of its chunks says, keeping the
// proportion of latency and flow; how it shares links with others in flight stays fluid.
void use_chunk_times(const Prepared& prepared, const Profile& profile, RunCosts& costs) {
  const ChunkModel model(*prepared.cluster);
  for (std::size_t i = 0; i < prepared.exchanges.size(); ++i) {
    const Exchange& exchange = prepared.exchanges[i];
    ExchangeCost& cost = costs.exchanges[i];
    double rate =
        cost.rate_cap_bytes_per_s > 0 ? cost.rate_cap_bytes_per_s : std::numeric_limits<double>::infinity();
    for (const FairShare::Use& use : cost.uses) {
      rate = std::min(rate, costs.capacities[static_cast<std::size_t>(use.constraint)] / use.coefficient);
    }
    if (!(rate > 0) || !(cost.work_bytes > 0)) continue;
    const double fluid = cost.latency.seconds() + cost.work_bytes / rate;
    const TransferPlan plan = prepared.patterns.plan(exchange.pattern, exchange.payload, profile);
    const ChunkRun run = model.run(prepared.patterns.key(exchange.pattern), plan, exchange.payload, profile);
    const double chunked = std::max(run.total, costs.lower_bounds[i]).seconds();
    if (!(fluid > 0) || run.total == Time::max()) continue;
    cost.latency = cost.latency * (chunked / fluid);
    cost.work_bytes *= chunked / fluid;
  }
}

}  // namespace

Errors check_range(const Prepared& prepared, const RunCosts& costs) {
  std::vector<double> of_list;  // of doubles: sums of integers could overflow
  for (const CostedList& list : costs.lists) {
    double sum = 0;
    for (const KernelRun& run : list.runs) {
      sum += static_cast<double>(run.duration_ps) +
             static_cast<double>(run.host_per_launch_ps) * static_cast<double>(run.launches);
    }
    of_list.push_back(sum);
  }
  for (const RankClass& rank_class : prepared.program->classes) {
    double sum = 0;
    for (const Instruction& i : rank_class.instructions) {
      if (i.op_list >= 0) sum += of_list[static_cast<std::size_t>(i.op_list)];
    }
    if (sum < kLongestPs) continue;
    return {
        Error{ErrorCode::infeasible,
              {},
              fmt::format("a step takes {:.0f} days of work on a GPU; the simulator's clock reaches 106 days",
                          sum * 1e-12 / 86400.0),
              "Check the GPU's rates and the size of the model and batch."}};
  }
  return {};
}

RunCosts make_costs(const Prepared& prepared, const Profile& profile, Fidelity fidelity) {
  RunCosts costs;
  const GpuSpec& gpu = prepared.cluster->gpu;
  costs.lists.reserve(prepared.program->op_lists.size());
  for (std::size_t i = 0; i < prepared.program->op_lists.size(); ++i) {
    costs.lists.push_back(
        cost(prepared.program->op_lists[i], prepared.kernel_model[i], gpu, profile, prepared.multi_gpu));
  }
  costs.capacities = prepared.patterns.capacities(profile);
  for (const Exchange& exchange : prepared.exchanges) {
    const TransferPlan plan = prepared.patterns.plan(exchange.pattern, exchange.payload, profile);
    ExchangeCost cost;
    cost.latency = plan.latency;
    cost.work_bytes = plan.work_bytes;
    cost.rate_cap_bytes_per_s = plan.rate_cap_bytes_per_s;
    for (const PatternSet::Use& use : prepared.patterns.uses(exchange.pattern, plan.algorithm)) {
      if (use.bytes_per_work_byte > 0) cost.uses.push_back({use.constraint, use.bytes_per_work_byte});
    }
    costs.exchanges.push_back(std::move(cost));
    costs.lower_bounds.push_back(prepared.patterns.lower_bound(exchange.pattern, exchange.payload, profile));
  }
  if (fidelity == Fidelity::chunk) use_chunk_times(prepared, profile, costs);
  costs.host_per_collective_ps = Time::from_us(profile[ParameterId::host_time_per_collective_us]).ps();
  costs.host_per_op_ps = Time::from_us(profile[ParameterId::host_time_per_op_us]).ps();
  if (const LinkSpec* link = host_link(*prepared.cluster)) {
    costs.copy_bandwidth = link->bandwidth * profile[ParameterId::pcie_efficiency];
    costs.copy_latency = link->latency;
  }
  costs.rate_beside_communication =
      std::clamp(1.0 - profile[ParameterId::communication_interference], 0.0, 1.0);
  return costs;
}

}  // namespace foretrain
