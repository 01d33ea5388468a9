// Collectives chunk by chunk: every transfer of every chunk over every edge of the ring or tree has its own
// start and end. The edges serve chunks in a known order (first come, first served, and who comes first
// follows from the algorithm), so the simulation is a sweep in that order and needs no event queue: 10^8
// transfers a second.
//
//   start(edge, chunk, step) = max(edge free, the same chunk of the step before has arrived at the edge's
//   tail) end = start + bytes / rate of the edge;   arrival = end + latency of the edge
//
// Against the fluid model it adds what depends on order: the fill of pipelines, latency that hides behind
// other chunks, slow edges that others wait for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/hardware/cluster.h"
#include "model/hardware/collective_kind.h"
#include "model/hardware/profile.h"
#include "sim/network/pattern.h"
#include "sim/network/topology.h"

namespace foretrain {

struct ChunkEdge {
  double bytes_per_s = 0;
  Time latency;
};

struct ChunkRun {
  Time total;
  std::int64_t transfers = 0;  // of one chunk over one edge
};

// What a step sends is cut into chunks of this size at most: NCCL's 1 MiB slices on eight channels. LL's
// lines are smaller, but its messages are too.
constexpr std::int64_t kChunkBytes = std::int64_t{8} * 1048576;
// No simulation makes more transfers; chunks are larger then.
constexpr std::int64_t kMostTransfers = 50'000'000;

// A ring (all_reduce, all_gather, reduce_scatter over n edges) or a chain (broadcast and reduce over n-1
// edges, send_recv over one) that moves `bytes` of payload. all_to_all: every edge carries one n-th by
// itself.
ChunkRun simulate_ring(CollectiveKind kind, double bytes, std::int32_t ranks,
                       std::span<const ChunkEdge> edges, std::int64_t chunk_bytes = kChunkBytes);

// A pipelined tree: `parents` by vertex, -1 for the root; edges from each vertex to its parent (`up`) and
// back
// (`down`). reduce uses the way up, broadcast the way down, all_reduce both.
ChunkRun simulate_tree(CollectiveKind kind, double bytes, std::span<const std::int32_t> parents,
                       std::span<const ChunkEdge> up, std::span<const ChunkEdge> down,
                       std::int64_t chunk_bytes = kChunkBytes);

// Patterns on a cluster. Not thread-safe (its topology remembers routes).
class ChunkModel {
 public:
  explicit ChunkModel(const Cluster& cluster);

  // One execution of the pattern on the otherwise idle network, by the algorithm and with the latency and
  // rate limit of its fluid plan. Links are shared among all flows of the pattern in proportion to what they
  // carry; equal groups take equally long, so only the first is followed.
  ChunkRun run(const PatternKey& pattern, const TransferPlan& plan, Bytes payload,
               const Profile& profile) const;

 private:
  Topology topology_;
};

}  // namespace foretrain
