#include "model/json/parse.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/base/file.h"
#include "model/base/text.h"
#include "model/json/syntax_error.h"

namespace foretrain {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Errors one_error(const std::string& file, TextPosition at, std::string message, std::string hint = {}) {
  return {
      Error{ErrorCode::input, Location{file, at.line, at.column, {}}, std::move(message), std::move(hint)}};
}

}  // namespace

// Receives the events of the library's parser and builds the tree. The library tells no positions, but it has
// checked the text up to every event, so that a token begins after the white space, comments, "," and ":"
// that follow the last one, and ends where a token of its kind must.
class JsonBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  JsonBuilder(std::string_view text, const std::string& file, const JsonLimits& limits)
      : text_(text), file_(std::make_shared<const std::string>(file)), limits_(limits), cursor_(text) {}

  Expected<JsonValue> result() && {
    if (!errors_.empty()) return fail(std::move(errors_));
    root_.place_children();
    return std::move(root_);
  }

  bool null() { return scalar(4, JsonValue::make_null()); }
  bool boolean(bool value) { return scalar(value ? 4 : 5, JsonValue::make_bool(value)); }
  bool number_integer(number_integer_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) { return number(value); }
  bool string(string_t& value) {
    const TextPosition start = begin_token();
    end_string();
    return add(start, JsonValue::make_string(std::move(value)));
  }
  bool binary(binary_t&) { return false; }  // JSON text has none

  bool key(string_t& name) {
    const TextPosition start = begin_token();
    end_string();
    Frame& frame = frames_.back();
    const auto [earlier, is_new] = frame.keys.emplace(name, start);
    if (!is_new) {
      errors_.push_back(Error{ErrorCode::input, Location{*file_, start.line, start.column, {}},
                              fmt::format("the key {} is there twice; it was first written at {}:{}",
                                          in_quotes(name), earlier->second.line, earlier->second.column),
                              "remove one of the two"});
      frame.duplicate = true;
    }
    frame.key = std::move(name);
    frame.key_at = start;
    return true;
  }

  bool start_object(std::size_t) { return open(JsonValue::make_object()); }
  bool start_array(std::size_t) { return open(JsonValue::make_array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool parse_error(std::size_t chars_read, const std::string& last_token,
                   const nlohmann::detail::exception& exception) {
    JsonSyntaxError problem;
    problem.text = text_;
    problem.token_start = skip_separators(cursor_.offset());
    problem.stopped_at = chars_read == 0 ? 0 : chars_read - 1;
    problem.last_token_size = last_token.size();
    problem.library_message = exception.what();
    if (!frames_.empty()) {
      problem.open_bracket = frames_.back().value.is_object() ? '{' : '[';
      problem.opened_at = frames_.back().at;
    }
    errors_.push_back(explain(problem, *file_));
    return false;
  }

 private:
  struct Frame {
    JsonValue value;
    TextPosition at;
    std::map<std::string, TextPosition> keys;
    std::string key;  // of the member whose value comes next
    TextPosition key_at;
    bool duplicate = false;
  };

  std::size_t skip_separators(std::size_t offset) const { return skip_json_space(text_, offset, ",:"); }

  TextPosition begin_token() {
    cursor_.advance_to(skip_separators(cursor_.offset()));
    return cursor_.position();
  }
  void end_string() {
    std::size_t end = cursor_.offset() + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    cursor_.advance_to(end + 1);
  }

  bool scalar(std::size_t length, JsonValue value) {
    const TextPosition start = begin_token();
    cursor_.advance_to(cursor_.offset() + length);
    return add(start, std::move(value));
  }
  bool number(double value) {
    const TextPosition start = begin_token();
    const std::size_t begin = cursor_.offset();
    const std::size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", begin), text_.size());
    cursor_.advance_to(end);
    return add(start, JsonValue::make_number(value, std::string(text_.substr(begin, end - begin))));
  }

  bool count(TextPosition at) {
    if (++values_ <= limits_.max_values) return true;
    errors_ = one_error(
        *file_, at, fmt::format("there are more than {} values, the most that is read", limits_.max_values));
    return false;
  }

  bool open(JsonValue value) {
    const TextPosition start = begin_token();
    cursor_.advance_to(cursor_.offset() + 1);
    if (!count(start)) return false;
    if (frames_.size() >= static_cast<std::size_t>(limits_.max_depth)) {
      errors_.push_back(
          one_error(*file_, start, fmt::format("is nested more than {} deep", limits_.max_depth)).front());
      return false;
    }
    frames_.push_back(Frame{std::move(value), start, {}, {}, {}, false});
    return true;
  }
  bool close() {
    begin_token();
    cursor_.advance_to(cursor_.offset() + 1);
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    return place(frame.at, std::move(frame.value));
  }

  bool add(TextPosition at, JsonValue value) { return count(at) && place(at, std::move(value)); }

  bool place(TextPosition at, JsonValue value) {
    value.file_ = file_;
    value.line_ = at.line;
    value.column_ = at.column;
    if (frames_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Frame& frame = frames_.back();
    if (frame.value.is_object()) {
      if (std::exchange(frame.duplicate, false)) return true;
      value.key_ = std::move(frame.key);
      value.key_line_ = frame.key_at.line;
      value.key_column_ = frame.key_at.column;
    }
    frame.value.children_.push_back(std::move(value));
    return true;
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  const JsonLimits& limits_;
  TextCursor cursor_;
  JsonValue root_;
  std::vector<Frame> frames_;
  std::size_t values_ = 0;
  Errors errors_;
};

Expected<JsonValue> parse_json(std::string_view text, const std::string& file, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return fail(Error{ErrorCode::input,
                      Location{file, 0, 0, {}},
                      fmt::format("is {} bytes long; at most {} are read", text.size(), limits.max_bytes),
                      {}});
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  // The library would skip another one, and the positions would be wrong.
  if (text.starts_with(kByteOrderMark))
    return fail(one_error(file, {}, "begins with two byte order marks; expected one at most"));
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return fail(one_error(file, {}, "is UTF-16; expected UTF-8", "save the file as UTF-8"));
  }
  if (const auto bad = find_invalid_utf8(text)) {
    return fail(
        one_error(file, position_at(text, *bad),
                  fmt::format("the byte 0x{:02x} is not valid UTF-8", static_cast<unsigned char>(text[*bad])),
                  "save the file as UTF-8"));
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return fail(one_error(file, position_at(text, nul), "there is a NUL byte; expected text"));
  }
  JsonBuilder builder(text, file, limits);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder, nlohmann::json::input_format_t::json, true,
                            true);
  return std::move(builder).result();
}

Expected<JsonValue> parse_json_file(const std::string& path, const JsonLimits& limits) {
  const Expected<std::string> text = read_file(path, limits.max_bytes + 3);
  if (!text) return fail(text.error());
  return parse_json(*text, path, limits);
}

}  // namespace foretrain
