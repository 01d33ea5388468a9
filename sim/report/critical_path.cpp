#include <algorithm>
#include <limits>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>

#include "sim/report/report.h"

namespace foretrain {
namespace {

struct EdgeData {
  std::int64_t minus_duration = 0;
  CauseKind kind = CauseKind::order;
};
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, EdgeData>;

}  // namespace

CriticalPath critical_path(const StepProgram& program, const StepGraph& graph) {
  CriticalPath path;
  if (graph.nodes.empty()) return path;
  Graph dag(graph.nodes.size());
  for (const StepGraph::Edge& e : graph.edges) {
    boost::add_edge(static_cast<std::size_t>(e.from), static_cast<std::size_t>(e.to),
                    EdgeData{-e.duration_ps, e.kind}, dag);
  }
  // Longest paths are shortest paths over negated durations, which a DAG allows.
  std::vector<std::int64_t> distance(graph.nodes.size());
  std::vector<std::size_t> before(graph.nodes.size());
  constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::max() / 2;
  boost::dag_shortest_paths(dag, 0,
                            boost::weight_map(boost::get(&EdgeData::minus_duration, dag))
                                .distance_map(boost::make_iterator_property_map(
                                    distance.begin(), boost::get(boost::vertex_index, dag)))
                                .predecessor_map(boost::make_iterator_property_map(
                                    before.begin(), boost::get(boost::vertex_index, dag)))
                                .distance_inf(kUnreached));
  std::size_t at = graph.nodes.size() - 1;
  if (distance[at] == kUnreached) return path;
  path.length = Time::from_ps(-distance[at]);
  while (at != 0) {
    const std::size_t from = before[at];
    // Of parallel edges the longest is on the path.
    const EdgeData* best = nullptr;
    for (auto [e, end] = boost::out_edges(from, dag); e != end; ++e) {
      if (boost::target(*e, dag) != at) continue;
      const EdgeData& data = dag[*e];
      if (best == nullptr || data.minus_duration < best->minus_duration) best = &data;
    }
    const StepGraph::Node& node = graph.nodes[at];
    if (best->minus_duration < 0) {
      const StepGraph::Node& named = node.instruction >= 0 ? node : graph.nodes[from];
      CriticalStep step;
      step.rank_class = named.rank_class;
      step.instruction = named.instruction;
      step.kind = best->kind;
      step.start = Time::from_ps(-distance[from]);
      step.end = Time::from_ps(-distance[at]);
      const Time duration = step.end - step.start;
      if (step.kind == CauseKind::compute) path.compute += duration;
      if (step.kind == CauseKind::communication) path.communication += duration;
      if (step.kind == CauseKind::host) path.host += duration;
      path.steps.push_back(std::move(step));
    }
    at = from;
  }
  std::reverse(path.steps.begin(), path.steps.end());
  std::vector<CriticalStep> merged;
  for (CriticalStep& step : path.steps) {
    CriticalStep* last = merged.empty() ? nullptr : &merged.back();
    if (last != nullptr && last->kind == step.kind && last->rank_class == step.rank_class &&
        last->instruction == step.instruction) {
      last->end = step.end;
    } else {
      merged.push_back(std::move(step));
    }
  }
  for (CriticalStep& step : merged) {
    const bool known = step.rank_class >= 0 && step.instruction >= 0;
    step.label = known ? label_of(program.classes[static_cast<std::size_t>(step.rank_class)]
                                      .instructions[static_cast<std::size_t>(step.instruction)])
                       : "step";
  }
  path.steps = std::move(merged);
  return path;
}

}  // namespace foretrain
