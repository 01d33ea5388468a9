// JSON string literals.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace foretrain {

// With its quotes; control characters, quotes and backslashes escaped, other bytes as they are.
inline std::string json_escaped(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace foretrain
