#include "model/json/write.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/text.h"

namespace foretrain {
namespace {

constexpr std::size_t kMaxInlineItems = 8;
constexpr std::size_t kIndent = 2;

class Writer {
 public:
  explicit Writer(bool pretty) : pretty_(pretty) {}

  void write(const JsonValue& value, std::size_t depth) {
    switch (value.type()) {
      case JsonType::null:
        text_ += "null";
        return;
      case JsonType::boolean:
        text_ += value.as_bool() ? "true" : "false";
        return;
      case JsonType::integer:
      case JsonType::number:
        text_ += value.number_text();
        return;
      case JsonType::string:
        text_ += json_quoted(value.as_string());
        return;
      case JsonType::array:
        write_children(value, depth, '[', ']');
        return;
      case JsonType::object:
        write_children(value, depth, '{', '}');
        return;
    }
  }

  std::string take() { return std::move(text_); }

 private:
  static bool fits_on_a_line(const JsonValue& value) {
    const auto& items = value.children();
    return value.is_array() && items.size() <= kMaxInlineItems &&
           std::none_of(items.begin(), items.end(),
                        [](const JsonValue& item) { return item.is_array() || item.is_object(); });
  }

  void new_line(std::size_t depth) {
    text_ += '\n';
    text_.append(depth * kIndent, ' ');
  }

  void write_children(const JsonValue& value, std::size_t depth, char open, char close) {
    text_ += open;
    const bool lines = pretty_ && !value.children().empty() && !fits_on_a_line(value);
    bool first = true;
    for (const JsonValue& child : value.children()) {
      if (!first) text_ += pretty_ && !lines ? ", " : ",";
      first = false;
      if (lines) new_line(depth + 1);
      if (value.is_object()) text_ += json_quoted(child.key()) + (pretty_ ? ": " : ":");
      write(child, depth + 1);
    }
    if (lines) new_line(depth);
    text_ += close;
  }

  bool pretty_;
  std::string text_;
};

}  // namespace

std::string json_quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t good = find_invalid_utf8(text).value_or(text.size());
    for (const char c : text.substr(0, good)) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        result += '\\';
        result += c;
      } else if (c == '\n') {
        result += "\\n";
      } else if (c == '\t') {
        result += "\\t";
      } else if (c == '\r') {
        result += "\\r";
      } else if (byte < 0x20) {
        result += fmt::format("\\u{:04x}", byte);
      } else {
        result += c;
      }
    }
    text.remove_prefix(good);
    if (text.empty()) break;
    result += "\xEF\xBF\xBD";  // U+FFFD
    text.remove_prefix(1);
  }
  return result + '"';
}

std::string to_text(const JsonValue& value) {
  Writer writer(true);
  writer.write(value, 0);
  return writer.take() + '\n';
}

std::string to_compact_text(const JsonValue& value) {
  Writer writer(false);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace foretrain
