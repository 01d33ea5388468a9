// Small text helpers of the readers: did-you-mean, trimming, splitting, UTF-8 and line:column. Pure
// functions, safe from any thread. Case functions know ASCII only and never look at the locale.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

// Levenshtein distance in bytes where swapping two neighbours counts as one edit ("optimal string
// alignment").
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that a person who wrote `name` most likely meant: equal but for case, or within one edit per
// three characters of the longer word (at least one). The earliest of equally near candidates; nothing when
// none is near.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);
std::optional<std::string> nearest(std::string_view name, std::span<const std::string_view> candidates);

// `did you mean "tp"?` when a candidate is near, else `known LABEL: a, b, c` (at most 20 names, then "...").
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates,
                         std::string_view label = "names");

// Without leading and trailing spaces, tabs, carriage returns and line feeds.
std::string_view trim(std::string_view text);
// Pieces between separators; "" gives one empty piece, "a," gives "a" and "".
std::vector<std::string_view> split(std::string_view text, char separator);
std::string to_lower(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);

// In double quotes, control characters and invalid UTF-8 escaped, shortened to about `limit` bytes with
// "...".
std::string in_quotes(std::string_view text, std::size_t limit = 60);

// Byte offset of the first byte that is not valid UTF-8 (overlong forms and surrogates are invalid too).
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

// Counted from 1; a column is a code point, a line ends with a line feed.
struct TextPosition {
  int line = 1;
  int column = 1;
};
TextPosition position_at(std::string_view text, std::size_t offset);

// Walks forward through a text and knows the line and column of where it stands. Linear in total.
class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}
  void advance_to(std::size_t offset);  // never backwards; beyond the end stops at the end
  std::size_t offset() const { return offset_; }
  TextPosition position() const { return position_; }

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
  TextPosition position_;
};

}  // namespace foretrain
