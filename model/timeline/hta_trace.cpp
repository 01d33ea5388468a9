// The form of Chrome trace that Holistic Trace Analysis reads: what PyTorch's profiler writes for one rank.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "model/timeline/chrome_trace.h"
#include "model/timeline/escape.h"
#include "model/timeline/text_sink.h"

namespace foretrain {
namespace {

constexpr int kFirstStream = 7;    // CUDA's first non-default stream, as PyTorch traces show it
constexpr int kStreamStride = 13;  // 7, 20, 33, ...
constexpr std::int64_t kPsPerUs = 1000000;

// Whole microseconds: both ends rounded, so that neighbours stay neighbours; at least 1 long.
struct WholeSpan {
  std::int64_t start, length;
};
WholeSpan whole(const Span& span) {
  const std::int64_t start = (span.start_ps + kPsPerUs / 2) / kPsPerUs;
  const std::int64_t end = (span.end_ps + kPsPerUs / 2) / kPsPerUs;
  return {start, std::max<std::int64_t>(1, end - start)};
}

std::string kernel_name(const Timeline& timeline, const Span& span) {
  const std::string& name = timeline.names[static_cast<std::size_t>(span.name)];
  if (span.category != SpanCategory::communication && span.category != SpanCategory::pipeline_transfer)
    return name;
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  std::string_view kind = "SendRecv";
  if (has("educe_scatter") || has("ReduceScatter") || has("Reduce-scatter"))
    kind = "ReduceScatter_Sum_f32";
  else if (has("all_gather") || has("AllGather") || has("All-gather"))
    kind = "AllGather";
  else if (has("all_reduce") || has("AllReduce") || has("All-reduce"))
    kind = "AllReduce_Sum_f32";
  else if (has("roadcast"))
    kind = "Broadcast";
  return fmt::format("ncclDevKernel_{}_RING_SIMPLE({})", kind, name);
}

Expected<void> write_rank(const Timeline& timeline, std::int32_t rank, const std::vector<const Span*>& spans,
                          const std::string& file) {
  auto sink = TextSink::open(file);
  if (!sink) return fail(std::move(sink.error()));
  sink->write(
      fmt::format("{{\n\"schemaVersion\": 1,\n\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, "
                  "\"world_size\": {}}},\n\"traceEvents\": [\n",
                  rank, timeline.ranks));
  std::int64_t end = 0;
  std::int64_t begin = 0;
  for (const Span* span : spans) {
    const WholeSpan w = whole(*span);
    end = std::max(end, w.start + w.length);
  }
  sink->write(fmt::format(
      R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{"External id": 1}}}})",
      begin, std::max<std::int64_t>(1, end - begin)));
  std::int64_t correlation = 1;
  for (const Span* span : spans) {
    const WholeSpan w = whole(*span);
    const int stream = kFirstStream + kStreamStride * span->stream;
    ++correlation;
    sink->write(
        fmt::format(",\n{{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": "
                    "1, \"tid\": 1, \"ts\": {}, "
                    "\"dur\": 1, \"args\": {{\"External id\": {}, \"correlation\": {}, \"cbid\": 211}}}}",
                    w.start, correlation, correlation));
    const bool copy = span->category == SpanCategory::memory_copy;
    sink->write(fmt::format(
        ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": {}, \"pid\": 0, \"tid\": {}, \"ts\": {}, \"dur\": "
        "{}, \"args\": "
        "{{\"External id\": {}, \"device\": 0, \"context\": 1, \"stream\": {}, \"correlation\": {}}}}}",
        copy ? "gpu_memcpy" : "kernel", json_escaped(copy ? "Memcpy HtoD" : kernel_name(timeline, *span)),
        stream, w.start, w.length, correlation, stream, correlation));
  }
  sink->write("\n]\n}\n");
  return sink->close();
}

}  // namespace

Expected<void> write_hta_traces(const Timeline& timeline, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(Error{ErrorCode::io,
                      {folder, 0, 0, ""},
                      fmt::format("cannot be made: {}", error.message()),
                      "name a folder that may be written to"});
  }
  // An instruction whose ops were recorded is shown by its ops.
  std::set<std::tuple<std::int32_t, std::uint8_t, std::int32_t>> with_ops;
  for (const Span& span : timeline.spans) {
    if (span.op >= 0) with_ops.emplace(span.rank, span.stream, span.instruction);
  }
  std::map<std::int32_t, std::vector<const Span*>> ranks;
  for (const Span& span : timeline.spans) {
    if (span.stream == kHostTrack || span.category == SpanCategory::step ||
        span.category == SpanCategory::host)
      continue;
    if (span.op < 0 && with_ops.contains({span.rank, span.stream, span.instruction})) continue;
    if (span.end_ps <= span.start_ps) continue;
    ranks[span.rank].push_back(&span);
  }
  for (const auto& [rank, spans] : ranks) {
    const std::string file = (std::filesystem::path(folder) / fmt::format("rank-{}.json", rank)).string();
    if (auto written = write_rank(timeline, rank, spans, file); !written) return written;
  }
  return {};
}

}  // namespace foretrain
