// A JsonValue as text. Members keep their order; numbers that were read are written as they were read,
// computed ones in the shortest form that reads back equal. Independent of the locale.
#pragma once

#include <string>
#include <string_view>

#include "model/json/value.h"

namespace foretrain {

// Indented by two spaces per level, arrays of up to eight scalars on one line, ends with a line feed.
std::string to_text(const JsonValue& value);
// Without any white space.
std::string to_compact_text(const JsonValue& value);
// A JSON string literal with its quotes; invalid UTF-8 becomes U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace foretrain
