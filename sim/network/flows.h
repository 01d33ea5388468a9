// Which rank sends to which, and how much, when groups of ranks do a collective: the flows of a ring, a tree
// or pairs, before they are laid over routes. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/ids.h"
#include "model/hardware/collective_kind.h"
#include "sim/network/topology.h"

namespace foretrain {

struct Flow {
  std::int32_t from = 0, to = 0;  // GPUs (global ranks)
  double share = 0;               // bytes per byte of payload
};

// The ring's flows. A group over several machines makes one ring per NIC that its ranks of one machine can
// use (each carrying its share of the payload), so that every ring leaves the machine at another GPU; inside
// a machine all ranks follow one another.
//   all_reduce 2(n-1)/n, all_gather and reduce_scatter (n-1)/n on every edge of the ring; broadcast and
//   reduce 1 on all edges but the last; all_to_all 1/n between every pair; send_recv 1.
std::vector<Flow> ring_flows(CollectiveKind kind, const std::vector<Rank>& group, const Topology& topology);

// NCCL's double binary tree over machines, chains inside them: half of the payload goes up and down each
// tree. all_reduce uses both directions, broadcast the way down, reduce the way up; other kinds: empty.
std::vector<Flow> tree_flows(CollectiveKind kind, const std::vector<Rank>& group, const Topology& topology);

// Parent of each node in one binary tree over 0..n-1 in which every odd node is a leaf; -1 for the root.
std::vector<std::int32_t> binary_tree_parents(std::int32_t n);

}  // namespace foretrain
