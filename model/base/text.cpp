#include "model/base/text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace foretrain {
namespace {

constexpr std::size_t kMaxComparedLength = 64;  // nobody misspells a name of this length by a few letters
constexpr std::size_t kMaxListedNames = 20;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Index of the nearest of `count` candidates, see nearest().
template <typename NameAt>
std::optional<std::size_t> nearest_index(std::string_view name, std::size_t count, const NameAt& name_at) {
  if (name.empty() || name.size() > kMaxComparedLength) return std::nullopt;
  const std::string wanted = to_lower(name);
  std::optional<std::size_t> best;
  std::size_t best_distance = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view candidate = name_at(i);
    if (candidate.empty() || candidate.size() > kMaxComparedLength) continue;
    const std::size_t distance = edit_distance(wanted, to_lower(candidate));
    const std::size_t longer = std::max(wanted.size(), candidate.size());
    // A one-letter word that differs in its letter is another word, not a misspelling.
    if (distance > std::max<std::size_t>(1, longer / 3) || distance >= longer) continue;
    if (!best || distance < best_distance) {
      best = i;
      best_distance = distance;
    }
  }
  return best;
}

// Length of the well-formed UTF-8 sequence at text[i], or 0 (Unicode standard, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) -> unsigned {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U;
  };
  const auto tail = [&](std::size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  const auto index =
      nearest_index(name, candidates.size(), [&](std::size_t i) { return std::string_view(candidates[i]); });
  if (!index) return std::nullopt;
  return candidates[*index];
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string_view> candidates) {
  const auto index = nearest_index(name, candidates.size(), [&](std::size_t i) { return candidates[i]; });
  if (!index) return std::nullopt;
  return std::string(candidates[*index]);
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates,
                         std::string_view label) {
  if (const auto near = nearest(name, candidates)) return fmt::format("did you mean \"{}\"?", *near);
  if (candidates.empty()) return {};
  const std::size_t shown = std::min(candidates.size(), kMaxListedNames);
  return fmt::format(
      "known {}: {}{}", label,
      fmt::join(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < candidates.size() ? ", ..." : "");
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string in_quotes(std::string_view text, std::size_t limit) {
  std::string result = "\"";
  std::size_t i = 0;
  while (i < text.size()) {
    if (i >= limit) return result + "...\"";
    const std::size_t length = utf8_length(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (byte == '"' || byte == '\\') {
      result += '\\';
      result += text[i];
    } else if (byte == '\n') {
      result += "\\n";
    } else if (byte == '\t') {
      result += "\\t";
    } else if (byte == '\r') {
      result += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += text.substr(i, length);
    }
    i += std::max<std::size_t>(1, length);
  }
  return result + '"';
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

TextPosition position_at(std::string_view text, std::size_t offset) {
  TextCursor cursor(text);
  cursor.advance_to(offset);
  return cursor.position();
}

void TextCursor::advance_to(std::size_t offset) {
  const std::size_t end = std::min(offset, text_.size());
  for (; offset_ < end; ++offset_) {
    const auto byte = static_cast<unsigned char>(text_[offset_]);
    if (byte == '\n') {
      ++position_.line;
      position_.column = 1;
    } else if ((byte & 0xC0U) != 0x80U) {
      ++position_.column;
    }
  }
}

}  // namespace foretrain
