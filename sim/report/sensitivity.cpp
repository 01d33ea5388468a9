#include <algorithm>
#include <set>
#include <utility>

#include "sim/report/report.h"

namespace foretrain {
namespace {

std::string bandwidth_name(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::pcie:
      return "PCIe bandwidth";
    case LinkClass::nvlink:
      return "NVLink bandwidth";
    case LinkClass::host:
      return "host bridge bandwidth";
    case LinkClass::network:
      return "network bandwidth";
    case LinkClass::memory:
      return "host memory bandwidth";
  }
  return "link bandwidth";
}

Interval exact(double value) { return Interval{value, value, value}; }

}  // namespace

Expected<std::vector<SensitivityRow>> sensitivity(const TransformerConfig& model,
                                                  const TrainingSpec& training, const ParallelPlan& plan,
                                                  const Cluster& cluster, const Profile& profile,
                                                  Fidelity fidelity) {
  SimulationOptions options;
  options.fidelity = fidelity;
  options.memory = false;
  auto program = build_step_program(model, training, plan);
  if (!program) return fail(std::move(program.error()));
  auto simulator = Simulator::create(*program, cluster);
  if (!simulator) return fail(std::move(simulator.error()));
  const auto base = simulator->run(profile, options);
  if (!base) return fail(base.error());

  std::vector<SensitivityRow> rows;
  // `share`: of the base's tokens that the changed step trains, so that steps of different size compare.
  const auto add = [&](std::string name, const Expected<SimulationResult>& changed, double share = 1.0) {
    if (!changed) return;
    const double gain = 100.0 * (1.0 - changed->step_time / base->step_time / share);
    rows.push_back({std::move(name), gain, exact(changed->step_time.ms())});
  };
  const auto with = [&](std::initializer_list<std::pair<ParameterId, double>> factors) {
    Profile changed = profile;
    for (const auto& [id, factor] : factors) changed.at(id).value *= factor;
    return simulator->run(changed, options);
  };
  using enum ParameterId;
  add("matmul rate", with({{matmul_efficiency_fp32, 2}, {matmul_efficiency_tensor, 2}}));
  add("GPU memory bandwidth", with({{memory_efficiency, 2}}));
  add("host issue time", with({{host_time_per_op_us, 0.5}, {host_time_per_collective_us, 0.5}}));
  if (plan.world() > 1) {
    add("communication latency", with({{collective_latency_us, 0.5}, {hop_latency_us, 0.5}}));
    std::set<LinkClass> classes;
    for (const ClusterEdge& edge : cluster.edges) classes.insert(edge.link.link_class);
    for (const LinkClass link_class : classes) {
      Cluster wider = cluster;
      for (ClusterEdge& edge : wider.edges) {
        if (edge.link.link_class == link_class) edge.link.bandwidth = edge.link.bandwidth * 2;
      }
      const auto other = Simulator::create(*program, wider);
      if (!other) continue;
      Profile changed = profile;
      if (link_class == LinkClass::host) changed.at(host_bridge_gb_per_s).value *= 2;
      add(bandwidth_name(link_class), other->run(changed, options));
    }
  }
  TrainingSpec longer = training;
  longer.micro_batches *= 2;
  if (const auto more = build_step_program(model, longer, plan)) {
    if (const auto other = Simulator::create(*more, cluster))
      add("micro-batches", other->run(profile, options), 2.0);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const SensitivityRow& x, const SensitivityRow& y) {
    return x.gain_percent > y.gain_percent;
  });
  return rows;
}

}  // namespace foretrain
