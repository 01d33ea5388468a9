#include "model/timeline/chrome_trace.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "model/timeline/statistics.h"

namespace foretrain {
namespace {

class TraceFile {
 public:
  explicit TraceFile(const std::string& name) {
    std::string pattern = (std::filesystem::temp_directory_path() / "foretrain_trace_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = (folder_ / name).string();
  }
  ~TraceFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  const std::string& path() const { return path_; }
  std::string text() const {
    std::ifstream in(path_, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

Span span_of(Timeline& timeline, std::int32_t rank, std::uint8_t stream, SpanCategory category,
             std::int64_t start, std::int64_t end, const std::string& name) {
  Span span;
  span.start_ps = start;
  span.end_ps = end;
  span.rank = rank;
  span.stream = stream;
  span.category = category;
  span.name = timeline.intern(name);
  return span;
}

// Names with everything that JSON must escape, times to the picosecond, plain and compressed.
RC_GTEST_PROP(ChromeTrace, ReadsBackWhatItWrote, ()) {
  Timeline timeline;
  timeline.source = "simulated";
  timeline.title = "a \"title\"\n";
  timeline.metadata["key"] = "value\\";
  const int spans = *rc::gen::inRange(0, 30);
  const std::string names[] = {"F0", "quote \"", "back\\slash", "tab\tline\n", "caf\xC3\xA9", ""};
  for (int i = 0; i < spans; ++i) {
    const auto start = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000);
    Span span = span_of(
        timeline, *rc::gen::inRange(0, 5), static_cast<std::uint8_t>(*rc::gen::inRange(0, 5)),
        *rc::gen::element(SpanCategory::compute, SpanCategory::communication, SpanCategory::optimizer), start,
        start + *rc::gen::inRange<std::int64_t>(0, 1'000'000'000), names[*rc::gen::inRange(0, 6)]);
    span.instruction = *rc::gen::inRange(-1, 100);
    span.block = *rc::gen::inRange(-1, 10);
    span.bytes = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40);
    timeline.spans.push_back(span);
  }
  std::stable_sort(timeline.spans.begin(), timeline.spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.start_ps, a.rank, a.stream) < std::tie(b.start_ps, b.rank, b.stream);
  });
  const TraceFile file(*rc::gen::element<std::string>("trace.json", "trace.json.gz"));
  RC_ASSERT(write_chrome_trace(timeline, file.path()).has_value());
  const auto read = read_chrome_trace(file.path());
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->title == timeline.title);
  RC_ASSERT(read->metadata == timeline.metadata);
  RC_ASSERT(read->spans.size() == timeline.spans.size());
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& a = timeline.spans[i];
    const Span& b = read->spans[i];
    RC_ASSERT(std::tie(a.start_ps, a.end_ps, a.rank, a.stream, a.category, a.instruction, a.block, a.bytes) ==
              std::tie(b.start_ps, b.end_ps, b.rank, b.stream, b.category, b.instruction, b.block, b.bytes));
    RC_ASSERT(timeline.names[static_cast<std::size_t>(a.name)] ==
              read->names[static_cast<std::size_t>(b.name)]);
  }
}

TEST(ChromeTrace, EveryCutOfATraceIsAnErrorWithItsPlace) {
  Timeline timeline;
  timeline.spans.push_back(span_of(timeline, 0, 0, SpanCategory::compute, 0, 1000, "F0"));
  const TraceFile file("trace.json");
  ASSERT_TRUE(write_chrome_trace(timeline, file.path()));
  const std::string whole = file.text();
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    const auto read = parse_chrome_trace(whole.substr(0, length), "cut.json");
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error()[0].where.file, "cut.json");
    EXPECT_GE(read.error()[0].where.line, 1);
  }
}

TEST(ChromeTrace, OddTracesAreReadForWhatTheyHold) {
  const auto read = parse_chrome_trace(
      R"([{"ph":"X","name":"a","ts":1,"dur":2,"pid":"text","tid":7},{"ph":"B"},{"ph":"X","name":"no time"},
          {"ph":"X","name":"backwards","ts":5,"dur":-1},{"name":3,"ph":"X","ts":1e30,"dur":1},{}])",
      "odd.json");
  ASSERT_TRUE(read) << to_text(read.error());
  ASSERT_EQ(read->spans.size(), 1u);
  EXPECT_EQ(read->spans[0].start_ps, 1000000);
  EXPECT_EQ(read->spans[0].end_ps, 3000000);
}

TEST(ChromeTrace, WhatIsNoTraceIsRefused) {
  for (const char* text :
       {"", "42", "\"text\"", "{}", "{\"traceEvents\": 5}", "[1]", "[{}] x", "{\"traceEvents\":[{}]"}) {
    EXPECT_FALSE(parse_chrome_trace(text, "x.json")) << text;
  }
}

TEST(ChromeTrace, DamagedCompressionIsRefused) {
  const TraceFile file("trace.json.gz");
  Timeline timeline;
  for (int i = 0; i < 500; ++i)
    timeline.spans.push_back(span_of(timeline, i, 0, SpanCategory::compute, i, i + 7 * i, "F0"));
  ASSERT_TRUE(write_chrome_trace(timeline, file.path()));
  const std::string whole = file.text();
  file.write(whole.substr(0, whole.size() / 2));
  EXPECT_FALSE(read_chrome_trace(file.path()));
}

TEST(ChromeTrace, AFolderThatIsNotThereIsAnIoErrorAndLeavesNothing) {
  const auto written = write_chrome_trace(Timeline{}, "nowhere/trace.json");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error()[0].code, ErrorCode::io);
}

TEST(Activity, CountsUnionsOnceAndOpsInsteadOfTheirInstruction) {
  Timeline timeline;
  Span whole = span_of(timeline, 0, 0, SpanCategory::compute, 0, 100, "F0");
  whole.instruction = 4;
  timeline.spans.push_back(whole);
  for (const auto& [start, end] : {std::pair<std::int64_t, std::int64_t>{0, 30}, {40, 60}}) {
    Span op = span_of(timeline, 0, 0, SpanCategory::compute, start, end, "op");
    op.instruction = 4;
    op.op = 0;
    timeline.spans.push_back(op);
  }
  timeline.spans.push_back(span_of(timeline, 0, 1, SpanCategory::communication, 50, 90, "AllReduce"));
  timeline.spans.push_back(span_of(timeline, 0, 2, SpanCategory::pipeline_transfer, 80, 120, "Send"));
  const std::vector<RankActivity> activity = activity_of(timeline);
  ASSERT_EQ(activity.size(), 1u);
  EXPECT_EQ(activity[0].computing.ps(), 50);
  EXPECT_EQ(activity[0].communicating.ps(), 70);
  EXPECT_EQ(activity[0].both.ps(), 10);
  EXPECT_EQ(activity[0].idle.ps(), 10);
}

}  // namespace
}  // namespace foretrain
