// Reads tables of collective measurements of the form of data/nccl_sweeps.csv (what nccl-tests prints, one
// row per message size) and groups them into sweeps. Value types, safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/hardware/collective_kind.h"
#include "sim/network/collective_cost.h"

namespace foretrain {

class CsvTable;

struct CollectivePoint {
  std::string id;          // of the row; may be empty
  std::int64_t bytes = 0;  // as CollectiveKind says
  double time_us = 0;      // out of place
};

// One collective on one machine by one library, over message sizes. Points are ordered by size.
struct CollectiveSweep {
  std::string source, gpu, intra_link, inter_link, library, dtype;  // as written; may be empty
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveGroup group;     // nvlink when intra_link says so
  bool host_staged = false;  // intra_link says that traffic goes through host memory
  std::vector<CollectivePoint> points;
  std::size_t distinct_sizes() const;
  // Sweeps of one machine have the same source, gpu, ranks, nodes, links and library.
  std::string machine_key() const;
};

// Columns: collective, gpu, n_gpus, nodes, size_bytes, time_us_oop are needed; id, source, intra_link,
// inter_link, nccl, dtype, time_us_inplace, busbw_GBs_oop, algbw_GBs_oop, notes may stand; others are
// errors. A sweep is a set of rows with equal source, collective, gpu, n_gpus, nodes, links, nccl and dtype,
// in the order of its first row. Errors carry file, line and column: unknown collectives, sizes or times that
// are not positive, fewer than two GPUs, GPUs that do not divide into the nodes.
Expected<std::vector<CollectiveSweep>> read_collective_sweeps(const CsvTable& table);
Expected<std::vector<CollectiveSweep>> read_collective_sweeps(const std::string& path);

}  // namespace foretrain
