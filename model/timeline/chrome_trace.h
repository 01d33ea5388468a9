// Timelines as Chrome trace JSON: for Perfetto and chrome://tracing, and in the form that Holistic Trace
// Analysis reads. Writing is streamed; a name ending in .gz is compressed.
#pragma once

#include <string>

#include "model/base/error.h"
#include "model/timeline/timeline.h"

namespace foretrain {

// One process per rank, one thread per stream; times in microseconds with picosecond fractions; instruction
// id, op, block, micro-batch, chunk and payload in args; memory as counters. read_chrome_trace() reads it
// back.
Expected<void> write_chrome_trace(const Timeline& timeline, const std::string& file);

// Reads a Chrome trace (object or array form, .gz too): what write_chrome_trace() wrote comes back whole; of
// others the complete events ("ph": "X") and counters. pid is the rank and tid the stream; names that are no
// stream of ours get category compute. Errors: input with file and line for text that is no such trace; io.
Expected<Timeline> read_chrome_trace(const std::string& file);
Expected<Timeline> parse_chrome_trace(std::string text, const std::string& file);

// One file per rank, "rank-N.json", as PyTorch's profiler writes them and HTA expects: kernels with stream
// and correlation, their launches, one ProfilerStep, NCCL kernel names, whole microseconds (at least 1).
// Instructions whose ops were recorded appear as their ops. Needs a timeline of all ranks.
Expected<void> write_hta_traces(const Timeline& timeline, const std::string& folder);

}  // namespace foretrain
