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

std::string expected_words(const LibraryMessage& parts) {
  if (parts.expected == "'}'") return "\",\" or \"}\"";
  if (parts.expected == "']'") return "\",\" or \"]\"";
  if (parts.expected == "':'") return "\":\" after the key";
  if (parts.expected == "string literal") return "a key in double quotes";
  if (parts.expected == "end of input") return "nothing after the document's end";
  if (parts.context == "object key") return "a key in double quotes or \"}\"";
  return "a value";
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

Error explain_unexpected(const JsonSyntaxError& problem, const LibraryMessage& parts,
                         const std::string& file) {
  const std::size_t token_end = std::min(problem.stopped_at + 1, problem.text.size());
  const std::size_t start =
      token_end - std::min(token_end, std::max<std::size_t>(problem.last_token_size, 1));
  const std::string_view token = problem.text.substr(start, token_end - start);
  const std::string found =
      token.starts_with('"') ? fmt::format("the string {}", in_quotes(token.substr(1, token.size() - 2), 30))
                             : in_quotes(token, 30);
  const char before = last_before(problem.text, start);
  std::string hint;
  if ((token == "}" || token == "]") && before == ',') {
    hint = fmt::format("remove the comma before \"{}\"", token);
  } else if (parts.expected == "'}'" || parts.expected == "']'") {
    if (token == "}" || token == "]") {
      hint = fmt::format("the \"{}\" of line {}, column {} is closed by \"{}\"", problem.open_bracket,
                         problem.opened_at.line, problem.opened_at.column, token);
    } else if (token == ":" || token == "=") {
      hint = "only members of an object have keys";
    } else if (before == '0' && token.find_first_not_of("0123456789") == std::string_view::npos) {
      hint = "a number cannot begin with 0";
    } else {
      hint = "put a comma before it";
    }
  }
  return make(problem, file, start, fmt::format("found {}; expected {}", found, expected_words(parts)),
              std::move(hint));
}

std::string word_hint(std::string_view word, bool is_key) {
  const std::string lower = to_lower(word);
  if (word == "'") return "use double quotes";
  if (is_key) return fmt::format("write the key in double quotes: {}", in_quotes(word, 30));
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
  if (word == "#") return "comments begin with //";
  return fmt::format("a string is written in double quotes: {}", in_quotes(word, 30));
}

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
  const bool is_key = parts.context == "object key";
  return make(problem, file, start,
              fmt::format("found {}; expected {}", in_quotes(word, 30),
                          is_key ? "a key in double quotes" : "a value"),
              word_hint(word, is_key));
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
