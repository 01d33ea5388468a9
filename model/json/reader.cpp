#include "model/json/reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "model/base/format.h"
#include "model/base/text.h"

namespace foretrain {
namespace {

// "the string "abc"", "2.5", "an object": what came, for messages of the form "is ...; expected ...".
std::string found(const JsonValue& value) {
  switch (value.type()) {
    case JsonType::null:
      return "null";
    case JsonType::boolean:
      return value.as_bool() ? "true" : "false";
    case JsonType::integer:
    case JsonType::number:
      return value.number_text();
    case JsonType::string:
      return "the string " + in_quotes(value.as_string());
    case JsonType::array:
      return "an array";
    case JsonType::object:
      return "an object";
  }
  return "?";
}

void add(Errors& errors, const JsonValue& value, std::string message, std::string hint = {}) {
  errors.push_back(Error{ErrorCode::input, value.where(), std::move(message), std::move(hint)});
}

void add_wrong(Errors& errors, const JsonValue& value, std::string_view expected, std::string hint = {}) {
  add(errors, value, fmt::format("is {}; expected {}", found(value), expected), std::move(hint));
}

// " from 1 to 8", " above 0", " up to 8", or nothing.
template <typename T, typename ToText>
std::string range_words(const Bounds<T>& bounds, const ToText& to_words) {
  std::string words;
  if (bounds.min) words += fmt::format(" {} {}", bounds.above ? "above" : "from", to_words(*bounds.min));
  if (bounds.max)
    words += fmt::format("{} {}",
                         bounds.min && !bounds.above ? " to"
                         : bounds.min                ? " and up to"
                                                     : " up to",
                         to_words(*bounds.max));
  return words;
}

template <typename T>
bool within(const T& value, const Bounds<T>& bounds) {
  if (bounds.min && (value < *bounds.min || (bounds.above && !(value > *bounds.min)))) return false;
  return !bounds.max || !(value > *bounds.max);
}

std::string number_words(double value) { return fmt::format("{}", value); }

// The number of a value that is one and whole; a float that is whole and exact counts ("1e3").
std::optional<std::int64_t> whole_of(const JsonValue& value) {
  if (value.type() == JsonType::integer) return value.as_integer();
  if (value.type() != JsonType::number) return std::nullopt;
  const double number = value.as_double();
  if (number != std::trunc(number) || !(std::fabs(number) <= 9007199254740992.0)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// What to write when a number stands in quotes.
std::string unquoted_hint(const JsonValue& value) {
  if (!value.is_string()) return {};
  const Expected<double> number = parse_number(value.as_string());
  return number ? fmt::format("write {} without the quotes", trim(value.as_string())) : std::string{};
}

template <typename Int>
bool read_whole(const JsonValue& value, Int& into, Errors& errors, const Bounds<Int>& bounds) {
  Bounds<std::int64_t> range{std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max(), bounds.above};
  Bounds<std::int64_t> shown{std::nullopt, std::nullopt, bounds.above};
  if (bounds.min) range.min = shown.min = static_cast<std::int64_t>(*bounds.min);
  if (bounds.max) range.max = shown.max = static_cast<std::int64_t>(*bounds.max);
  const std::string expected =
      "a whole number" + range_words(shown, [](std::int64_t number) { return std::to_string(number); });
  const std::optional<std::int64_t> number = whole_of(value);
  if (!number) {
    add_wrong(errors, value, expected, unquoted_hint(value));
    return false;
  }
  if (!within(*number, range)) {
    std::string hint;
    if (!bounds.max && *number > *range.max) hint = fmt::format("the largest is {}", *range.max);
    add_wrong(errors, value, expected, std::move(hint));
    return false;
  }
  into = static_cast<Int>(*number);
  return true;
}

// A quantity: `parse` reads the text, `to_words` shows bounds in a unit.
template <typename T, typename Parse, typename ToText>
bool read_with_unit(const JsonValue& value, Dimension dimension, T& into, Errors& errors,
                    const Bounds<T>& bounds, const Parse& parse, const ToText& to_words) {
  if (!value.is_string()) {
    std::string hint = value.is_number() ? "write the unit too, in double quotes" : "";
    add_wrong(errors, value, describe(dimension), std::move(hint));
    return false;
  }
  const Expected<T> quantity = parse(value.as_string());
  if (!quantity) {
    add_located(errors, quantity.error(), value.where());
    return false;
  }
  if (!within(*quantity, bounds)) {
    add(errors, value,
        fmt::format("is {}; expected a value{}", in_quotes(value.as_string()),
                    range_words(bounds, to_words)));
    return false;
  }
  into = *quantity;
  return true;
}

std::string_view base_unit(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "B";
    case Dimension::bandwidth:
      return "B/s";
    case Dimension::time:
      return "s";
    case Dimension::flop_rate:
      return "FLOPS";
    case Dimension::power:
      return "W";
    case Dimension::energy:
      return "J";
    case Dimension::frequency:
      return "Hz";
    case Dimension::money:
      return "USD";
    case Dimension::price_per_hour:
      return "USD/h";
    case Dimension::price_per_kwh:
      return "USD/kWh";
  }
  return "";
}

std::string path_below(const JsonValue& value, std::string_view key) {
  JsonValue holder = JsonValue::make_object();
  const std::string below = holder.set(std::string(key), JsonValue::make_null()).path();
  const std::string path = value.path();
  if (path.empty() || below.starts_with('[')) return path + below;
  return path + "." + below;
}

}  // namespace

void add_located(Errors& errors, Errors more, const Location& where) {
  for (Error& error : more) {
    if (error.where.file.empty() && error.where.line == 0) error.where = where;
    errors.push_back(std::move(error));
  }
}

bool read_value(const JsonValue& value, bool& into, Errors& errors) {
  if (!value.is_bool()) {
    const std::string word = to_lower(trim(value.as_string()));
    add_wrong(
        errors, value, "true or false",
        word == "true" || word == "false" ? fmt::format("write {} without the quotes", word) : std::string{});
    return false;
  }
  into = value.as_bool();
  return true;
}

bool read_value(const JsonValue& value, std::string& into, Errors& errors) {
  if (!value.is_string()) {
    add_wrong(errors, value, "a string",
              value.is_number() ? fmt::format("write \"{}\"", value.number_text()) : std::string{});
    return false;
  }
  into = value.as_string();
  return true;
}

bool read_value(const JsonValue& value, int& into, Errors& errors, const Bounds<int>& bounds) {
  return read_whole(value, into, errors, bounds);
}
bool read_value(const JsonValue& value, std::int64_t& into, Errors& errors,
                const Bounds<std::int64_t>& bounds) {
  return read_whole(value, into, errors, bounds);
}

bool read_value(const JsonValue& value, double& into, Errors& errors, const Bounds<double>& bounds) {
  if (!value.is_number() || !within(value.as_double(), bounds)) {
    add_wrong(errors, value, "a number" + range_words(bounds, number_words), unquoted_hint(value));
    return false;
  }
  into = value.as_double();
  return true;
}

bool read_value(const JsonValue& value, Bytes& into, Errors& errors, const Bounds<Bytes>& bounds) {
  return read_with_unit(
      value, Dimension::bytes, into, errors, bounds, [](std::string_view text) { return parse_bytes(text); },
      format_bytes);
}
bool read_value(const JsonValue& value, Bandwidth& into, Errors& errors, const Bounds<Bandwidth>& bounds) {
  return read_with_unit(value, Dimension::bandwidth, into, errors, bounds, parse_bandwidth, format_bandwidth);
}
bool read_value(const JsonValue& value, Time& into, Errors& errors, const Bounds<Time>& bounds) {
  return read_with_unit(
      value, Dimension::time, into, errors, bounds, [](std::string_view text) { return parse_time(text); },
      format_time);
}
bool read_value(const JsonValue& value, FlopRate& into, Errors& errors, const Bounds<FlopRate>& bounds) {
  return read_with_unit(value, Dimension::flop_rate, into, errors, bounds, parse_flop_rate, format_flop_rate);
}

bool read_quantity(const JsonValue& value, Dimension dimension, double& into, Errors& errors,
                   const Bounds<double>& bounds) {
  return read_with_unit(
      value, dimension, into, errors, bounds,
      [dimension](std::string_view text) { return parse_quantity(text, dimension); },
      [dimension](double number) { return fmt::format("{} {}", number, base_unit(dimension)); });
}

std::optional<std::size_t> read_choice(const JsonValue& value, std::span<const std::string_view> names,
                                       Errors& errors) {
  const std::string expected = fmt::format("one of {}", fmt::join(names, ", "));
  if (!value.is_string()) {
    add_wrong(errors, value, expected);
    return std::nullopt;
  }
  const auto chosen = std::find(names.begin(), names.end(), value.as_string());
  if (chosen != names.end()) return static_cast<std::size_t>(chosen - names.begin());
  const std::optional<std::string> near = nearest(value.as_string(), names);
  add(errors, value, fmt::format("is {}; expected {}", in_quotes(value.as_string()), expected),
      near ? fmt::format("did you mean \"{}\"?", *near) : std::string{});
  return std::nullopt;
}

ObjectReader::ObjectReader(const JsonValue& value, Errors& errors)
    : object_(value.is_object() ? &value : nullptr),
      value_(&value),
      errors_(&errors),
      errors_before_(errors.size()) {
  if (object_ == nullptr) add_wrong(errors, value, "an object");
}

const JsonValue* ObjectReader::optional_value(std::string_view key) {
  ignore(key);
  return object_ == nullptr ? nullptr : object_->find(key);
}

const JsonValue* ObjectReader::required_value(std::string_view key) {
  const JsonValue* value = optional_value(key);
  if (value == nullptr && object_ != nullptr) error(key, "is missing");
  return value;
}

const JsonValue* ObjectReader::expect(const JsonValue* value, JsonType type) {
  if (value == nullptr || value->type() == type) return value;
  add_wrong(*errors_, *value, fmt::format("an {}", name_of(type)));
  return nullptr;
}
const JsonValue* ObjectReader::required_object(std::string_view key) {
  return expect(required_value(key), JsonType::object);
}
const JsonValue* ObjectReader::optional_object(std::string_view key) {
  return expect(optional_value(key), JsonType::object);
}
const JsonValue* ObjectReader::required_array(std::string_view key) {
  return expect(required_value(key), JsonType::array);
}
const JsonValue* ObjectReader::optional_array(std::string_view key) {
  return expect(optional_value(key), JsonType::array);
}

bool ObjectReader::required_quantity(std::string_view key, Dimension dimension, double& into,
                                     const Bounds<double>& bounds) {
  const JsonValue* value = required_value(key);
  return value != nullptr && read_quantity(*value, dimension, into, *errors_, bounds);
}
bool ObjectReader::optional_quantity(std::string_view key, Dimension dimension, double& into,
                                     const Bounds<double>& bounds) {
  const JsonValue* value = optional_value(key);
  return value != nullptr && read_quantity(*value, dimension, into, *errors_, bounds);
}

void ObjectReader::ignore(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
}

bool ObjectReader::has(std::string_view key) const {
  return object_ != nullptr && object_->find(key) != nullptr;
}

Location ObjectReader::where(std::string_view key) const {
  if (key.empty()) return value_->where();
  if (object_ != nullptr) {
    if (const JsonValue* value = object_->find(key)) return value->where();
  }
  Location place = value_->where();
  place.path = path_below(*value_, key);
  return place;
}

void ObjectReader::error(std::string_view key, std::string message, std::string hint) {
  errors_->push_back(Error{ErrorCode::input, where(key), std::move(message), std::move(hint)});
}

bool ObjectReader::finish() {
  if (object_ == nullptr) return ok();
  std::vector<std::string_view> absent;  // what is there already cannot have been meant
  for (const std::string& name : known_) {
    if (object_->find(name) == nullptr) absent.push_back(name);
  }
  const std::vector<std::string_view> all(known_.begin(), known_.end());
  for (const JsonValue& member : object_->children()) {
    if (std::find(known_.begin(), known_.end(), member.key()) != known_.end()) continue;
    const std::optional<std::string> near = nearest(member.key(), absent);
    errors_->push_back(
        Error{ErrorCode::input, member.key_where(), "is not a known key",
              near ? fmt::format("did you mean \"{}\"?", *near) : did_you_mean(member.key(), all, "keys")});
  }
  return ok();
}

}  // namespace foretrain
