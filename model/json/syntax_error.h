// Turns the library's complaint about JSON text into an error a person can act on. Internal to model/json.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/base/error.h"
#include "model/base/text.h"

namespace foretrain {

// Offset of the first character from `offset` that is neither white space, part of a comment nor in
// `separators`. A comment that is not closed is not skipped.
std::size_t skip_json_space(std::string_view text, std::size_t offset, std::string_view separators);

// What is known when the library's parser stops.
struct JsonSyntaxError {
  std::string_view text;
  std::size_t token_start = 0;      // first token after the last good one, separators skipped
  std::size_t stopped_at = 0;       // the last byte the library read; text.size() at the end
  std::size_t last_token_size = 0;  // bytes of the string or number it read last
  std::string library_message;
  char open_bracket = 0;  // innermost open container, 0 for none
  TextPosition opened_at;
};

Error explain(const JsonSyntaxError& problem, const std::string& file);

}  // namespace foretrain
