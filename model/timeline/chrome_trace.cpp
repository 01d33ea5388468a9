#include "model/timeline/chrome_trace.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/timeline/escape.h"
#include "model/timeline/text_sink.h"

namespace foretrain {
namespace {

constexpr std::string_view kStreamNames[] = {"compute", "data-parallel communication", "pipeline send",
                                             "pipeline receive", "copies"};

std::string stream_name(std::uint8_t stream) {
  if (stream == kHostTrack) return "host";
  if (stream < std::size(kStreamNames)) return std::string(kStreamNames[stream]);
  return fmt::format("stream {}", stream);
}

// Picoseconds as microseconds with all six fractional digits.
std::string microseconds(std::int64_t ps) { return fmt::format("{}.{:06}", ps / 1000000, ps % 1000000); }

}  // namespace

Expected<void> write_chrome_trace(const Timeline& timeline, const std::string& file) {
  auto sink = TextSink::open(file);
  if (!sink) return fail(std::move(sink.error()));
  sink->write(fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"source\":{},\"title\":{}",
                          json_escaped(timeline.source), json_escaped(timeline.title)));
  for (const auto& [key, value] : timeline.metadata) {
    sink->write(fmt::format(",{}:{}", json_escaped(key), json_escaped(value)));
  }
  sink->write("},\n\"traceEvents\":[\n");
  bool first = true;
  const auto event = [&](const std::string& text) {
    sink->write(first ? "" : ",\n");
    sink->write(text);
    first = false;
  };
  std::set<std::pair<std::int32_t, std::uint8_t>> tracks;
  std::set<std::int32_t> ranks;
  for (const Span& span : timeline.spans) {
    tracks.emplace(span.rank, span.stream);
    ranks.insert(span.rank);
  }
  for (const std::int32_t rank : ranks) {
    event(fmt::format(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}})", rank));
    event(fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})",
                      rank));
  }
  for (const auto& [rank, stream] : tracks) {
    event(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", rank,
                      stream, stream_name(stream)));
    event(
        fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                    rank, stream, stream));
  }
  for (const Span& span : timeline.spans) {
    event(fmt::format(
        R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"instruction":{},"op":{},"block":{},"micro_batch":{},"chunk":{},"bytes":{}}}}})",
        json_escaped(timeline.names[static_cast<std::size_t>(span.name)]), name_of(span.category), span.rank,
        span.stream, microseconds(span.start_ps), microseconds(span.end_ps - span.start_ps), span.instruction,
        span.op, span.block, span.micro_batch, span.chunk, span.bytes));
  }
  for (const CounterSample& sample : timeline.samples) {
    event(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"value":{}}}}})",
                      json_escaped(timeline.counters[static_cast<std::size_t>(sample.counter)]), sample.rank,
                      microseconds(sample.time_ps), sample.value));
  }
  sink->write("\n]}\n");
  return sink->close();
}

}  // namespace foretrain
