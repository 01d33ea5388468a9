// Strict, typed reading of JSON objects: every wrong, missing or unknown key becomes an Error with its place,
// what came and what was expected; reading goes on, so that a user sees all the errors at once.
//
//   Errors errors;
//   ObjectReader reader(document, errors);
//   reader.required("tp", plan.tp, {1, 1024});
//   reader.optional("bucket", plan.bucket, {kMiB});
//   reader.required_choice("precision", plan.precision, kPrecisionNames);
//   if (const JsonValue* cluster = reader.required_object("cluster")) read_cluster(*cluster, errors);
//   reader.finish();
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/base/error.h"
#include "model/base/quantity.h"
#include "model/base/units.h"
#include "model/json/value.h"

namespace foretrain {

// Inclusive bounds, either may be missing: {1, 1024}, {1}, {std::nullopt, 8}. With `above` the minimum itself
// is refused.
template <typename T>
struct Bounds {
  std::optional<T> min = std::nullopt;
  std::optional<T> max = std::nullopt;
  bool above = false;
};

// One name of an enumerator in files.
template <typename E>
struct EnumName {
  std::string_view name;
  E value;
};

// Puts file, line, column and path of `where` on errors that have none, and adds them to `errors`.
void add_located(Errors& errors, Errors more, const Location& where);

// One value of the type of `into`. False, with an error added and `into` untouched, when it is not one. Whole
// numbers may be written 1e3 but not 2.5; quantities are strings with a unit, never negative.
bool read_value(const JsonValue& value, bool& into, Errors& errors);
bool read_value(const JsonValue& value, std::string& into, Errors& errors);
bool read_value(const JsonValue& value, int& into, Errors& errors, const Bounds<int>& bounds = {});
bool read_value(const JsonValue& value, std::int64_t& into, Errors& errors,
                const Bounds<std::int64_t>& bounds = {});
bool read_value(const JsonValue& value, double& into, Errors& errors, const Bounds<double>& bounds = {});
bool read_value(const JsonValue& value, Bytes& into, Errors& errors, const Bounds<Bytes>& bounds = {});
bool read_value(const JsonValue& value, Bandwidth& into, Errors& errors,
                const Bounds<Bandwidth>& bounds = {});
bool read_value(const JsonValue& value, Time& into, Errors& errors, const Bounds<Time>& bounds = {});
bool read_value(const JsonValue& value, FlopRate& into, Errors& errors, const Bounds<FlopRate>& bounds = {});
// A quantity without a strong type, in its base unit (W, J, Hz, USD, USD/h, ...).
bool read_quantity(const JsonValue& value, Dimension dimension, double& into, Errors& errors,
                   const Bounds<double>& bounds = {});
// The index of a string among `names`.
std::optional<std::size_t> read_choice(const JsonValue& value, std::span<const std::string_view> names,
                                       Errors& errors);

template <typename E>
bool read_choice(const JsonValue& value, E& into, std::span<const EnumName<E>> table, Errors& errors) {
  std::vector<std::string_view> names;
  for (const EnumName<E>& entry : table) names.push_back(entry.name);
  const std::optional<std::size_t> index = read_choice(value, names, errors);
  if (index) into = table[*index].value;
  return index.has_value();
}

namespace detail {
template <typename T>
concept Bounded = !std::is_same_v<T, bool> && !std::is_same_v<T, std::string>;
}

class ObjectReader {
 public:
  // `value` and `errors` must outlive the reader. When `value` is not an object that is one error and every
  // later read fails silently.
  ObjectReader(const JsonValue& value, Errors& errors);

  // True when the key is there and its value is good; `into` is untouched otherwise. A missing required key
  // is an error, a missing optional key is none.
  template <typename T>
  bool required(std::string_view key, T& into, const std::type_identity_t<Bounds<T>>& bounds = {}) {
    return read(required_value(key), into, bounds);
  }
  template <typename T>
  bool optional(std::string_view key, T& into, const std::type_identity_t<Bounds<T>>& bounds = {}) {
    return read(optional_value(key), into, bounds);
  }
  template <typename T>
  bool optional(std::string_view key, std::optional<T>& into,
                const std::type_identity_t<Bounds<T>>& bounds = {}) {
    T value{};
    if (!read(optional_value(key), value, bounds)) return false;
    into = std::move(value);
    return true;
  }

  template <typename E, std::size_t N>
  bool required_choice(std::string_view key, E& into, const EnumName<E> (&table)[N]) {
    const JsonValue* value = required_value(key);
    return value != nullptr && read_choice(*value, into, std::span<const EnumName<E>>(table), *errors_);
  }
  template <typename E, std::size_t N>
  bool optional_choice(std::string_view key, E& into, const EnumName<E> (&table)[N]) {
    const JsonValue* value = optional_value(key);
    return value != nullptr && read_choice(*value, into, std::span<const EnumName<E>>(table), *errors_);
  }

  bool required_quantity(std::string_view key, Dimension dimension, double& into,
                         const Bounds<double>& bounds = {});
  bool optional_quantity(std::string_view key, Dimension dimension, double& into,
                         const Bounds<double>& bounds = {});

  // An array of values; bounds are those of each item. `into` is replaced only when all items are good.
  template <typename T>
  bool required_list(std::string_view key, std::vector<T>& into,
                     const std::type_identity_t<Bounds<T>>& bounds = {}) {
    return read_list(required_array(key), into, bounds);
  }
  template <typename T>
  bool optional_list(std::string_view key, std::vector<T>& into,
                     const std::type_identity_t<Bounds<T>>& bounds = {}) {
    return read_list(optional_array(key), into, bounds);
  }

  // The value itself, or nullptr; the typed ones are an error when the type is another.
  const JsonValue* required_value(std::string_view key);
  const JsonValue* optional_value(std::string_view key);
  const JsonValue* required_object(std::string_view key);
  const JsonValue* optional_object(std::string_view key);
  const JsonValue* required_array(std::string_view key);
  const JsonValue* optional_array(std::string_view key);

  // Declares a key known without reading it.
  void ignore(std::string_view key);
  bool has(std::string_view key) const;
  // Place of the key's value, or of the object when it is absent (with the path the key would have).
  Location where(std::string_view key) const;
  // Adds an error about a key's value (or the object itself for ""), for checks across values.
  void error(std::string_view key, std::string message, std::string hint = {});

  // Reports every key that no call above asked for, with the nearest one that was. Returns ok().
  bool finish();
  // No error was added to `errors` since this reader was made.
  bool ok() const { return errors_->size() == errors_before_; }

 private:
  template <typename T>
  bool read(const JsonValue* value, T& into, const Bounds<T>& bounds) {
    if (value == nullptr) return false;
    if constexpr (detail::Bounded<T>) {
      return read_value(*value, into, *errors_, bounds);
    } else {
      return read_value(*value, into, *errors_);
    }
  }
  template <typename T>
  bool read_list(const JsonValue* array, std::vector<T>& into, const Bounds<T>& bounds) {
    if (array == nullptr) return false;
    std::vector<T> items;
    bool good = true;
    for (const JsonValue& item : array->children()) {
      T value{};
      good = read(&item, value, bounds) && good;
      items.push_back(std::move(value));
    }
    if (good) into = std::move(items);
    return good;
  }
  const JsonValue* expect(const JsonValue* value, JsonType type);

  const JsonValue* object_;  // nullptr when the value is not an object
  const JsonValue* value_;
  Errors* errors_;
  std::size_t errors_before_;
  std::vector<std::string> known_;
};

}  // namespace foretrain
