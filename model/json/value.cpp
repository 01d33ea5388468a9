#include "model/json/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "model/json/write.h"

namespace foretrain {
namespace {

const std::string kEmpty;

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.find_first_of(".[]\"") == std::string_view::npos;
}

void append_step(std::string& path, std::string_view key, std::int64_t index) {
  if (index >= 0) {
    path += fmt::format("[{}]", index);
  } else if (is_plain_name(key)) {
    if (!path.empty()) path += '.';
    path += key;
  } else {
    path += fmt::format("[{}]", json_quoted(key));
  }
}

}  // namespace

std::string_view name_of(JsonType type) {
  switch (type) {
    case JsonType::null:
      return "null";
    case JsonType::boolean:
      return "true or false";
    case JsonType::integer:
      return "whole number";
    case JsonType::number:
      return "number";
    case JsonType::string:
      return "string";
    case JsonType::array:
      return "array";
    case JsonType::object:
      return "object";
  }
  return "?";
}

JsonValue JsonValue::make_bool(bool value) {
  JsonValue result;
  result.type_ = JsonType::boolean;
  result.integer_ = value ? 1 : 0;
  return result;
}
JsonValue JsonValue::make_integer(std::int64_t value) {
  JsonValue result;
  result.type_ = JsonType::integer;
  result.integer_ = value;
  result.number_ = static_cast<double>(value);
  result.text_ = std::to_string(value);
  return result;
}
JsonValue JsonValue::make_number(double value) {
  if (!std::isfinite(value)) return JsonValue{};
  return make_number(value, fmt::format("{}", value));
}
JsonValue JsonValue::make_number(double value, std::string text) {
  JsonValue result;
  result.type_ = JsonType::number;
  result.number_ = value;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, result.integer_);
  if (error == std::errc{} && stop == end) {
    result.type_ = JsonType::integer;
  } else {
    result.integer_ = 0;
  }
  result.text_ = std::move(text);
  return result;
}
JsonValue JsonValue::make_string(std::string value) {
  JsonValue result;
  result.type_ = JsonType::string;
  result.text_ = std::move(value);
  return result;
}
JsonValue JsonValue::make_array() {
  JsonValue result;
  result.type_ = JsonType::array;
  return result;
}
JsonValue JsonValue::make_object() {
  JsonValue result;
  result.type_ = JsonType::object;
  return result;
}

double JsonValue::as_double() const {
  if (type_ == JsonType::integer) return static_cast<double>(integer_);
  return type_ == JsonType::number ? number_ : 0.0;
}
const std::string& JsonValue::as_string() const { return type_ == JsonType::string ? text_ : kEmpty; }
const std::string& JsonValue::number_text() const { return is_number() ? text_ : kEmpty; }

const JsonValue* JsonValue::find(std::string_view name) const {
  if (!is_object()) return nullptr;
  const auto found = std::find_if(children_.begin(), children_.end(),
                                  [&](const JsonValue& child) { return child.key_ == name; });
  return found == children_.end() ? nullptr : &*found;
}
JsonValue* JsonValue::find(std::string_view name) {
  return const_cast<JsonValue*>(std::as_const(*this).find(name));
}
JsonValue* JsonValue::item(std::size_t index) {
  return is_array() && index < children_.size() ? &children_[index] : nullptr;
}

const std::shared_ptr<const detail::JsonPath>& JsonValue::path_node() {
  if (!node_)
    node_ = std::make_shared<const detail::JsonPath>(detail::JsonPath{parent_, key_, index_, has_parent_});
  return node_;
}

void JsonValue::place(const std::shared_ptr<const detail::JsonPath>& parent, std::int64_t index) {
  parent_ = parent;
  index_ = index;
  has_parent_ = true;
  node_.reset();
  place_children();
}

void JsonValue::place_children() {
  if (children_.empty()) return;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    children_[i].place(path_node(), is_array() ? static_cast<std::int64_t>(i) : -1);
  }
}

JsonValue& JsonValue::set(std::string name, JsonValue value) {
  if (is_null()) type_ = JsonType::object;
  if (JsonValue* existing = find(name)) {
    existing->replace(std::move(value));
    return *existing;
  }
  value.key_ = std::move(name);
  children_.push_back(std::move(value));
  children_.back().place(path_node(), -1);
  return children_.back();
}

JsonValue& JsonValue::append(JsonValue value) {
  if (is_null()) type_ = JsonType::array;
  value.key_.clear();
  children_.push_back(std::move(value));
  children_.back().place(path_node(), static_cast<std::int64_t>(children_.size()) - 1);
  return children_.back();
}

bool JsonValue::remove(std::string_view name) {
  if (!is_object()) return false;
  return std::erase_if(children_, [&](const JsonValue& child) { return child.key_ == name; }) > 0;
}

void JsonValue::replace(JsonValue value) {
  value.key_ = std::move(key_);
  value.parent_ = std::move(parent_);
  value.index_ = index_;
  value.has_parent_ = has_parent_;
  value.node_.reset();
  value.place_children();
  *this = std::move(value);
}

std::string JsonValue::path() const {
  std::vector<const detail::JsonPath*> steps;
  for (const detail::JsonPath* step = parent_.get(); step != nullptr && step->has_parent;
       step = step->parent.get()) {
    steps.push_back(step);
  }
  std::string text;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    append_step(text, (*step)->key, (*step)->index);
  if (has_parent_) append_step(text, key_, index_);
  return text;
}

Location JsonValue::where() const { return Location{file_ ? *file_ : std::string{}, line_, column_, path()}; }
Location JsonValue::key_where() const {
  Location place = where();
  if (key_line_ > 0) {
    place.line = key_line_;
    place.column = key_column_;
  }
  return place;
}
void JsonValue::set_origin(const Location& where) {
  file_ = std::make_shared<const std::string>(where.file);
  line_ = where.line;
  column_ = where.column;
}
void JsonValue::set_key_origin(const Location& where) {
  key_line_ = where.line;
  key_column_ = where.column;
}
void JsonValue::set_origin_of_all(const Location& where) {
  set_origin(where);
  share_origin(file_, where.line, where.column);
}
void JsonValue::share_origin(const std::shared_ptr<const std::string>& file, int line, int column) {
  file_ = file;
  line_ = key_line_ = line;
  column_ = key_column_ = column;
  for (JsonValue& child : children_) child.share_origin(file, line, column);
}

}  // namespace foretrain
