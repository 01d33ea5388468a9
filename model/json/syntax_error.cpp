#include "model/json/syntax_error.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace foretrain {
namespace {

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
         c == '-' || c == '.' || (static_cast<unsigned char>(c) & 0x80U) != 0;
}

std::string_view word_at(std::string_view text, std::size_t offset) {
  std::size_t end = offset;
  while (end < text.size() && is_word_character(text[end])) ++end;
  return text.substr(offset, std::max<std::size_t>(end - offset, offset < text.size() ? 1 : 0));
}

// The last character before `offset` that is neither white space nor in a comment; 0 for none.
char last_before(std::string_view text, std::size_t offset) {
  char last = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < offset;) {
    if (!in_string) i = skip_json_space(text, i, "");
    if (i >= offset) break;
    last = text[i];
    if (in_string && last == '\\') ++i;
    if (last == '"') in_string = !in_string;
    ++i;
  }
  return last;
}

// The library says "...while parsing CONTEXT - DETAIL; expected X"; parts that are absent are empty.
struct LibraryMessage {
  std::string_view context;
  std::string_view detail;
  std::string_view expected;
};

LibraryMessage split_message(std::string_view message) {
  LibraryMessage parts;
  constexpr std::string_view kWhile = "while parsing ";
  constexpr std::string_view kDash = " - ";
  constexpr std::string_view kExpected = "; expected ";
  if (const std::size_t at = message.find(kWhile); at != std::string_view::npos)
    message.remove_prefix(at + kWhile.size());
  if (const std::size_t dash = message.find(kDash); dash != std::string_view::npos) {
    parts.context = message.substr(0, dash);
    message.remove_prefix(dash + kDash.size());
  }
  if (const std::size_t at = message.rfind(kExpected);
      at != std::string_view::npos && message.starts_with("unexpected")) {
    parts.expected = message.substr(at + kExpected.size());
    message = message.substr(0, at);
  }
  if (const std::size_t at = message.find("; last read"); at != std::string_view::npos)
    message = message.substr(0, at);
  parts.detail = message;
  return parts;
}

// What may stand at an offset, from what stands before it.
enum class Place { value, key, first_key, colon, comma, document_end };

Place place_of(const JsonSyntaxError& problem, const LibraryMessage& parts, char before) {
  if (problem.open_bracket == 0) return before == 0 ? Place::value : Place::document_end;
  if (parts.context == "object separator") return Place::colon;
  if (problem.open_bracket == '[') return before == '[' || before == ',' ? Place::value : Place::comma;
  if (before == '{') return Place::first_key;
  if (before == ',') return Place::key;
  return before == ':' ? Place::value : Place::comma;
}

std::string expected_words(Place place, char open_bracket) {
  switch (place) {
    case Place::value:
      return "a value";
    case Place::key:
      return "a key in double quotes";
    case Place::first_key:
      return "a key in double quotes or \"}\"";
    case Place::colon:
      return "\":\" after the key";
    case Place::comma:
      return open_bracket == '[' ? "\",\" or \"]\"" : "\",\" or \"}\"";
    case Place::document_end:
      return "nothing after the document's end";
  }
  return {};
}

Error make(const JsonSyntaxError& problem, const std::string& file, std::size_t offset, std::string message,
           std::string hint = {}) {
  const TextPosition at = position_at(problem.text, offset);
  return Error{ErrorCode::input, Location{file, at.line, at.column, {}}, std::move(message), std::move(hint)};
}

Error explain_early_end(const JsonSyntaxError& problem, const std::string& file) {
  if (problem.open_bracket == 0) {
    const bool nothing = skip_json_space(problem.text, 0, "") == problem.text.size();
    return make(problem, file, problem.text.size(),
                nothing ? "is empty; expected a JSON document" : "the text ends too early; expected a value");
  }
  return make(problem, file, problem.text.size(),
              fmt::format("the text ends too early; the \"{}\" of line {}, column {} is not closed",
                          problem.open_bracket, problem.opened_at.line, problem.opened_at.column));
}

// A token the library could read, in a place where it may not stand.
Error explain_unexpected(const JsonSyntaxError& problem, const LibraryMessage& parts,
                         const std::string& file) {
  const std::size_t token_end = std::min(problem.stopped_at + 1, problem.text.size());
  std::size_t size = problem.last_token_size;  // right for strings and numbers only
  if (parts.detail.starts_with("unexpected '")) size = 1;
  if (parts.detail.ends_with("true literal") || parts.detail.ends_with("null literal")) size = 4;
  if (parts.detail.ends_with("false literal")) size = 5;
  const std::size_t start = token_end - std::min(token_end, std::max<std::size_t>(size, 1));
  const std::string_view token = problem.text.substr(start, token_end - start);
  const std::string found =
      token.size() > 1 && token.front() == '"'
          ? fmt::format("the string {}", in_quotes(token.substr(1, token.size() - 2), 30))
          : in_quotes(token, 30);
  const char before = last_before(problem.text, start);
  const Place place = place_of(problem, parts, before);
  std::string hint;
  if ((token == "}" || token == "]") && before == ',') {
    hint = fmt::format("remove the comma before \"{}\"", token);
  } else if (place == Place::comma) {
    if (token == "}" || token == "]") {
      hint = fmt::format("the \"{}\" of line {}, column {} is closed by \"{}\"", problem.open_bracket,
                         problem.opened_at.line, problem.opened_at.column, token);
    } else if (token == ":") {
      hint = "only members of an object have keys";
    } else if (before == '0' && start > 0 && problem.text[start - 1] == '0') {
      hint = "a number cannot begin with 0";
    } else {
      hint = "put a comma before it";
    }
  }
  return make(problem, file, start,
              fmt::format("found {}; expected {}", found, expected_words(place, problem.open_bracket)),
              std::move(hint));
}

std::string word_hint(std::string_view word, Place place, char before) {
  const std::string lower = to_lower(word);
  if (word == "#") return "comments begin with //";
  if (place == Place::document_end) return {};
  if (word == "'") return "use double quotes";
  if (place == Place::key || place == Place::first_key) {
    return fmt::format("write the key in double quotes: {}", in_quotes(word, 30));
  }
  if (place == Place::colon) return {};
  if (place == Place::comma) {
    return is_word_character(before) ? "put the value in double quotes" : "put a comma before it";
  }
  if (lower == "nan" || lower == "inf" || lower == "infinity" || lower == "+inf" || lower == "-inf" ||
      lower == "-infinity" || lower == "-nan") {
    return "JSON has no NaN and no infinity";
  }
  if (lower == "true" || lower == "false" || lower == "null")
    return fmt::format("write {} in lower case", lower);
  if (lower == "none" || lower == "nil") return "write null";
  if (lower == "yes" || lower == "on") return "write true";
  if (lower == "no" || lower == "off") return "write false";
  if (word.starts_with('+')) return "leave the \"+\" out";
  if (word.starts_with('.')) return "write a digit before the decimal point";
  return fmt::format("a string is written in double quotes: {}", in_quotes(word, 30));
}

// Text that is no token at all.
Error explain_bad_token(const JsonSyntaxError& problem, const LibraryMessage& parts,
                        const std::string& file) {
  const std::size_t start = problem.token_start;
  const std::size_t stop = std::min(problem.stopped_at, problem.text.size());
  if (parts.detail.starts_with("invalid comment")) {
    const bool unclosed = problem.text.substr(start).starts_with("/*");
    return unclosed ? make(problem, file, start, "the comment is not closed", "end it with */")
                    : make(problem, file, start, "found \"/\"; expected a value or a comment",
                           "comments begin with // or /*");
  }
  if (parts.detail.starts_with("invalid string")) {
    const char bad = stop < problem.text.size() ? problem.text[stop] : '\0';
    if (bad == '\0' || bad == '\n' || bad == '\r')
      return make(problem, file, start, "the string is not closed",
                  "end it with a double quote on the same line");
    if (static_cast<unsigned char>(bad) < 0x20) {
      return make(problem, file, stop, fmt::format("the control character 0x{:02x} is in a string", bad),
                  fmt::format("write it as \\u{:04x}{}", bad, bad == '\t' ? " or \\t" : ""));
    }
    const std::string_view reason =
        parts.detail.substr(std::min(parts.detail.find(':') + 2, parts.detail.size()));
    return make(problem, file, stop, fmt::format("invalid string: {}", reason),
                "a backslash in a string is written \\\\");
  }
  const std::string_view word = word_at(problem.text, start);
  if (parts.detail.starts_with("invalid number")) {
    return make(problem, file, start, fmt::format("{} is not a number", in_quotes(word, 30)),
                word.starts_with("-") && to_lower(word).find_first_of("in") != std::string::npos
                    ? "JSON has no NaN and no infinity"
                    : "digits must follow \"-\", \".\" and \"e\"");
  }
  const char before = last_before(problem.text, start);
  const Place place = place_of(problem, parts, before);
  return make(
      problem, file, start,
      fmt::format("found {}; expected {}", in_quotes(word, 30), expected_words(place, problem.open_bracket)),
      word_hint(word, place, before));
}

}  // namespace

std::size_t skip_json_space(std::string_view text, std::size_t offset, std::string_view separators) {
  while (offset < text.size()) {
    const char c = text[offset];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || separators.find(c) != std::string_view::npos) {
      ++offset;
    } else if (text.substr(offset).starts_with("//")) {
      offset = std::min(text.find_first_of("\n\r", offset), text.size());
    } else if (text.substr(offset).starts_with("/*")) {
      const std::size_t end = text.find("*/", offset + 2);
      if (end == std::string_view::npos) return offset;
      offset = end + 2;
    } else {
      return offset;
    }
  }
  return offset;
}

Error explain(const JsonSyntaxError& problem, const std::string& file) {
  if (problem.library_message.find("number overflow") != std::string::npos) {
    return make(
        problem, file, problem.token_start,
        fmt::format("the number {} is too large", in_quotes(word_at(problem.text, problem.token_start), 30)));
  }
  const LibraryMessage parts = split_message(problem.library_message);
  if (parts.detail == "unexpected end of input") return explain_early_end(problem, file);
  if (parts.detail.starts_with("unexpected ")) return explain_unexpected(problem, parts, file);
  return explain_bad_token(problem, parts, file);
}

}  // namespace foretrain
