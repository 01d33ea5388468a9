// Strict JSON text to a JsonValue. Comments (// and /* */) and a UTF-8 byte order mark are allowed, nothing
// else beyond RFC 8259. Errors have file:line:column: syntax, duplicate keys (all of them, with both places),
// invalid UTF-8, NUL bytes, numbers beyond double, and the limits below.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/base/error.h"
#include "model/json/value.h"

namespace foretrain {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{16} << 20;
  int max_depth = 200;
  std::size_t max_values = 2'000'000;
};

// `file` is the name shown in messages.
Expected<JsonValue> parse_json(std::string_view text, const std::string& file, const JsonLimits& limits = {});

// Reads and parses a file; an error of code io when it cannot be read.
Expected<JsonValue> parse_json_file(const std::string& path, const JsonLimits& limits = {});

}  // namespace foretrain
