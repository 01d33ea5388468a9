// A Timeline: what every rank did when, simulated or measured. Columnar-friendly plain structs; names
// are interned so that millions of spans stay small. Not thread-safe while being written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "model/hardware/collective_kind.h"

namespace foretrain {

// What the span's time was spent on.
enum class SpanCategory : std::uint8_t {
  compute,
  communication,
  pipeline_transfer,
  optimizer,
  memory_copy,
  host,
  step
};
std::string_view name_of(SpanCategory category);

struct Span {
  std::int64_t start_ps = 0;
  std::int64_t end_ps = 0;
  std::int32_t rank = 0;
  std::int32_t instruction = -1;  // InstructionId in the rank's class; -1 for ops outside the program
  std::int32_t op = -1;           // op inside the instruction; -1: the whole instruction
  std::int32_t name = 0;          // index into Timeline::names
  std::int32_t block = -1, micro_batch = -1, chunk = -1;
  std::uint8_t stream = 0;  // StreamKind; kHostTrack for the issuing thread
  SpanCategory category = SpanCategory::compute;
  std::int64_t bytes = 0;  // payload of a collective or transfer
};
constexpr std::uint8_t kHostTrack = 255;

struct CounterSample {
  std::int64_t time_ps = 0;
  std::int32_t rank = 0;
  std::int32_t counter = 0;  // index into Timeline::counters
  double value = 0;
};

struct Timeline {
  std::string source;  // "simulated" or "measured"
  std::string title;
  std::int32_t ranks = 0;
  std::vector<std::string> names;
  std::vector<std::string> counters;  // "allocated memory (bytes)"
  std::vector<Span> spans;            // ordered by (start, rank, stream)
  std::vector<CounterSample> samples;
  std::map<std::string, std::string> metadata;

  // Index of `name`, added when new.
  std::int32_t intern(std::string_view name);

 private:
  std::map<std::string, std::int32_t, std::less<>> index_;
};

}  // namespace foretrain
