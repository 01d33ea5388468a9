// A JSON document that remembers where each value was written. Members keep the order of the file.
// A value type: copies are deep and independent and remember the place they were copied from; safe to read
// from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"

namespace foretrain {

enum class JsonType : std::uint8_t { null, boolean, integer, number, string, array, object };
std::string_view name_of(
    JsonType type);  // "null", "true or false", "whole number", "number", "string", "array", "object"

namespace detail {
// One step of a path, shared by the children of a container.
struct JsonPath {
  std::shared_ptr<const JsonPath> parent;
  std::string key;  // when index < 0
  std::int64_t index = -1;
  bool has_parent = false;
};
}  // namespace detail

class JsonValue {
 public:
  JsonValue() = default;  // null
  static JsonValue make_null() { return JsonValue{}; }
  static JsonValue make_bool(bool value);
  static JsonValue make_integer(std::int64_t value);
  static JsonValue make_number(double value);  // a value that is not finite becomes null, as JSON has none
  // A number whose text is kept as it was written; `text` must be a valid JSON number.
  static JsonValue make_number(double value, std::string text);
  static JsonValue make_string(std::string value);
  static JsonValue make_array();
  static JsonValue make_object();

  JsonType type() const { return type_; }
  bool is_null() const { return type_ == JsonType::null; }
  bool is_bool() const { return type_ == JsonType::boolean; }
  bool is_number() const { return type_ == JsonType::integer || type_ == JsonType::number; }
  bool is_string() const { return type_ == JsonType::string; }
  bool is_array() const { return type_ == JsonType::array; }
  bool is_object() const { return type_ == JsonType::object; }

  // Each needs the matching type; another type gives false, 0 or "".
  bool as_bool() const { return type_ == JsonType::boolean && integer_ != 0; }
  std::int64_t as_integer() const { return type_ == JsonType::integer ? integer_ : 0; }
  double as_double() const;
  const std::string& as_string() const;
  // A number as it was written ("1e3", "0.10"); else "".
  const std::string& number_text() const;

  // Members of an object or items of an array, in order; empty for the others. A member's name is its key().
  const std::vector<JsonValue>& children() const { return children_; }
  const std::string& key() const { return key_; }
  const JsonValue* find(std::string_view name) const;  // member of an object, or nullptr
  JsonValue* find(std::string_view name);
  JsonValue* item(std::size_t index);

  // Adds a member or replaces it in its old place / appends an item, and returns it. The value must be an
  // object / array (null is made into one). Paths of everything below `value` are set to the new place.
  JsonValue& set(std::string name, JsonValue value);
  JsonValue& append(JsonValue value);
  bool remove(std::string_view name);
  // Takes over the value, its type and origin; keeps the own key and place in the document.
  void replace(JsonValue value);

  // Where the value stands (file, line, column, dotted path), and where its key does.
  Location where() const;
  Location key_where() const;
  std::string path() const;                    // "parallel.stages[2].blocks"; "" for the root
  void set_origin(const Location& where);      // file, line and column of this value; the path is not changed
  void set_key_origin(const Location& where);  // line and column of the key
  // The same file, line and column for this value and everything below it.
  void set_origin_of_all(const Location& where);

 private:
  friend class JsonBuilder;
  const std::shared_ptr<const detail::JsonPath>& path_node();
  void place(const std::shared_ptr<const detail::JsonPath>& parent, std::int64_t index);
  void place_children();
  void share_origin(const std::shared_ptr<const std::string>& file, int line, int column);

  JsonType type_ = JsonType::null;
  std::int64_t integer_ = 0;
  double number_ = 0;
  std::string text_;  // of a string, or a number as written
  std::string key_;
  std::vector<JsonValue> children_;
  std::shared_ptr<const std::string> file_;
  int line_ = 0;
  int column_ = 0;
  int key_line_ = 0;
  int key_column_ = 0;
  std::int64_t index_ = -1;  // place in the parent array
  bool has_parent_ = false;
  std::shared_ptr<const detail::JsonPath> parent_;  // path of the parent container
  std::shared_ptr<const detail::JsonPath> node_;    // own path as the children share it; made when needed
};

}  // namespace foretrain
