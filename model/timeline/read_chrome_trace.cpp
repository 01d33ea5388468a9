#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "model/base/file.h"
#include "model/base/text.h"
#include "model/timeline/chrome_trace.h"

namespace foretrain {
namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

constexpr std::size_t kMostBytes = std::size_t{4} << 30;

constexpr SpanCategory kCategories[] = {
    SpanCategory::compute,   SpanCategory::communication, SpanCategory::pipeline_transfer,
    SpanCategory::optimizer, SpanCategory::memory_copy,   SpanCategory::host,
    SpanCategory::step};

SpanCategory category_of(std::string_view name) {
  for (const SpanCategory category : kCategories) {
    if (name_of(category) == name) return category;
  }
  return SpanCategory::compute;
}

// Takes the value when it has the type; traces of others hold all sorts, and what has another type counts as
// absent.
template <typename T, typename Result>
bool take(Result&& result, T& into) {
  return !std::forward<Result>(result).get(into);
}

// One event as it stands in the file, keys in any order.
struct RawEvent {
  std::string_view phase, name, category;
  double pid = 0, tid = 0, start_us = 0, duration_us = 0;
  std::int64_t instruction = -1, op = -1, block = -1, micro_batch = -1, chunk = -1, bytes = 0;
  double counter = 0;
  bool timed = false;
};

// Microseconds as picoseconds; nothing for what does not fit the clock.
std::optional<std::int64_t> picoseconds(double us) {
  const double ps = us * 1e6;
  if (!(std::abs(ps) < 9e18)) return std::nullopt;
  return std::llround(ps);
}

class Reader {
 public:
  Reader(std::string text, std::string file) : text_(std::move(text)), file_(std::move(file)) {}

  Expected<Timeline> read() {
    simdjson::padded_string padded(text_);
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document;
    if (auto error = parser.iterate(padded).get(document)) return wrong(error, 0);
    simdjson::ondemand::json_type type;
    if (auto error = document.type().get(type)) return wrong(error, 0);
    simdjson::error_code error = simdjson::SUCCESS;
    if (type == simdjson::ondemand::json_type::array) {
      simdjson::ondemand::array events;
      error = document.get_array().get(events);
      if (!error) error = read_events(events);
    } else if (type == simdjson::ondemand::json_type::object) {
      object top;
      error = document.get_object().get(top);
      if (!error) error = read_top(top);
    } else {
      return fail(Error{
          ErrorCode::input, {file_, 1, 1, ""}, "is no Chrome trace: expected an object or an array", ""});
    }
    // The parser stops where the value ends; only white space may follow.
    const char* rest = nullptr;
    if (!error && !document.current_location().get(rest)) {
      const std::string_view after(rest, static_cast<std::size_t>(padded.data() + padded.size() - rest));
      if (after.find_first_not_of(" \t\r\n") != std::string_view::npos) error = simdjson::TAPE_ERROR;
    }
    if (error) {
      const char* at = nullptr;
      if (document.current_location().get(at)) at = padded.data() + padded.size();
      return wrong(error, static_cast<std::size_t>(at - padded.data()));
    }
    if (!has_events_) {
      return fail(
          Error{ErrorCode::input, {file_, 1, 1, "traceEvents"}, "is missing", "is this a Chrome trace?"});
    }
    std::stable_sort(timeline_.spans.begin(), timeline_.spans.end(), [](const Span& a, const Span& b) {
      return std::tie(a.start_ps, a.rank, a.stream) < std::tie(b.start_ps, b.rank, b.stream);
    });
    return std::move(timeline_);
  }

 private:
  tl::unexpected<Errors> wrong(simdjson::error_code error, std::size_t offset) const {
    const TextPosition at = position_at(text_, std::min(offset, text_.size()));
    return fail(Error{ErrorCode::input,
                      {file_, at.line, at.column, ""},
                      fmt::format("is no Chrome trace: {}", simdjson::error_message(error)),
                      "the file may be cut short"});
  }

  simdjson::error_code read_top(object& top) {
    for (auto field : top) {
      std::string_view key;
      if (auto error = field.unescaped_key().get(key)) return error;
      value content;
      if (auto error = field.value().get(content)) return error;
      if (key == "traceEvents") {
        simdjson::ondemand::array events;
        if (auto error = content.get_array().get(events)) return error;
        if (auto error = read_events(events)) return error;
      } else if (key == "otherData") {
        object data;
        if (content.get_object().get(data)) continue;
        for (auto entry : data) {
          std::string_view name, text;
          if (auto error = entry.unescaped_key().get(name)) return error;
          const std::string owned(name);
          if (entry.value().get_string().get(text)) continue;
          if (owned == "source")
            timeline_.source = text;
          else if (owned == "title")
            timeline_.title = text;
          else
            timeline_.metadata[owned] = std::string(text);
        }
      }
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code read_events(simdjson::ondemand::array& events) {
    has_events_ = true;
    for (auto item : events) {
      object fields;
      if (auto error = item.get_object().get(fields)) return error;
      RawEvent event;
      if (auto error = read_event(fields, event)) return error;
      keep(event);
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code read_event(object& fields, RawEvent& event) {
    for (auto field : fields) {
      std::string_view key;
      if (auto error = field.unescaped_key().get(key)) return error;
      value content;
      if (auto error = field.value().get(content)) return error;
      if (key == "ph")
        take(content.get_string(), event.phase);
      else if (key == "name")
        take(content.get_string(), event.name);
      else if (key == "cat")
        take(content.get_string(), event.category);
      else if (key == "pid")
        take(content.get_double(), event.pid);
      else if (key == "tid")
        take(content.get_double(), event.tid);
      else if (key == "ts")
        event.timed = take(content.get_double(), event.start_us);
      else if (key == "dur")
        take(content.get_double(), event.duration_us);
      else if (key == "args") {
        object arguments;
        if (content.get_object().get(arguments)) continue;
        if (auto error = read_arguments(arguments, event)) return error;
      }
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code read_arguments(object& arguments, RawEvent& event) {
    const std::pair<std::string_view, std::int64_t*> known[] = {
        {"instruction", &event.instruction}, {"op", &event.op},       {"block", &event.block},
        {"micro_batch", &event.micro_batch}, {"chunk", &event.chunk}, {"bytes", &event.bytes}};
    for (auto field : arguments) {
      std::string_view key;
      if (auto error = field.unescaped_key().get(key)) return error;
      value content;
      if (auto error = field.value().get(content)) return error;
      if (key == "value") take(content.get_double(), event.counter);
      for (const auto& [name, into] : known) {
        if (key != name) continue;
        std::int64_t number = 0;
        if (take(content.get_int64(), number)) *into = number;
        break;
      }
    }
    return simdjson::SUCCESS;
  }

  void keep(const RawEvent& event) {
    const auto start = picoseconds(event.start_us);
    const auto duration = picoseconds(event.duration_us);
    const auto small = [](double number) {
      return std::abs(number) < 2e9 ? static_cast<std::int32_t>(number) : std::int32_t{0};
    };
    const auto index = [](std::int64_t number) {
      return number >= -1 && number < std::numeric_limits<std::int32_t>::max()
                 ? static_cast<std::int32_t>(number)
                 : -1;
    };
    if (!event.timed || !start || !duration || *duration < 0 || std::abs(*start) > 4'000'000'000'000'000'000)
      return;
    if (event.phase == "C") {
      CounterSample sample;
      sample.time_ps = *start;
      sample.rank = small(event.pid);
      sample.value = event.counter;
      const auto known = std::find(timeline_.counters.begin(), timeline_.counters.end(), event.name);
      sample.counter = static_cast<std::int32_t>(known - timeline_.counters.begin());
      if (known == timeline_.counters.end()) timeline_.counters.emplace_back(event.name);
      timeline_.samples.push_back(sample);
      return;
    }
    if (event.phase != "X" || *duration > 4'000'000'000'000'000'000) return;
    Span span;
    span.start_ps = *start;
    span.end_ps = *start + *duration;
    span.rank = small(event.pid);
    span.stream = static_cast<std::uint8_t>(small(event.tid));
    span.name = timeline_.intern(event.name);
    span.category = category_of(event.category);
    span.instruction = index(event.instruction);
    span.op = index(event.op);
    span.block = index(event.block);
    span.micro_batch = index(event.micro_batch);
    span.chunk = index(event.chunk);
    span.bytes = event.bytes;
    timeline_.ranks = std::max(timeline_.ranks, span.rank + 1);
    timeline_.spans.push_back(span);
  }

  std::string text_;
  std::string file_;
  Timeline timeline_;
  bool has_events_ = false;
};

Expected<std::string> read_compressed(const std::string& file) {
  const gzFile in = gzopen(file.c_str(), "rb");
  const auto problem = [&](const std::string& why, ErrorCode code) {
    return fail(Error{code, {file, 0, 0, ""}, why, ""});
  };
  if (in == nullptr) return problem(fmt::format("cannot be read: {}", std::strerror(errno)), ErrorCode::io);
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 20);
  int got = 0;
  while ((got = gzread(in, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0 &&
         text.size() < kMostBytes) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int code = Z_OK;
  gzerror(in, &code);
  const bool closed = gzclose_r(in) == Z_OK;
  if (!(closed && got == 0 && code == Z_OK))
    return problem("is damaged or cut short: cannot be decompressed", ErrorCode::input);
  return text;
}

}  // namespace

Expected<Timeline> parse_chrome_trace(std::string text, const std::string& file) {
  return Reader(std::move(text), file).read();
}

Expected<Timeline> read_chrome_trace(const std::string& file) {
  auto text = file.ends_with(".gz") ? read_compressed(file) : read_file(file, kMostBytes);
  if (!text) return fail(std::move(text.error()));
  return parse_chrome_trace(std::move(*text), file);
}

}  // namespace foretrain
