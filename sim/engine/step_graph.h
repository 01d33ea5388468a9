// What happened in a simulated step and why then: events with times, and for each what it waited for. Every
// edge says "not before `from` + duration" and held in the simulation; every node but the first has at least
// one edge that held with equality. The longest path from the first node to the last is therefore as long as
// the step.
#pragma once

#include <cstdint>
#include <vector>

namespace foretrain {

enum class CauseKind : std::uint8_t {
  compute,        // device work
  communication,  // a collective or transfer
  host,           // the issuing thread
  order           // nothing but order: streams, dependencies, partners that had to arrive
};

struct StepGraph {
  struct Node {
    std::int64_t time_ps = 0;
    std::int32_t rank_class = -1;   // -1: of several classes
    std::int32_t instruction = -1;  // in that class; -1: the step's start or end
  };
  struct Edge {
    std::int32_t from = -1, to = -1;
    std::int64_t duration_ps = 0;
    CauseKind kind = CauseKind::order;
  };
  std::vector<Node> nodes;  // the first is the step's start, the last its end; edges point forward
  std::vector<Edge> edges;

  bool empty() const { return nodes.empty(); }
};

}  // namespace foretrain
