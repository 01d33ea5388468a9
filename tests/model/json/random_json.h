// Random JSON trees of ASCII text for property tests.
#pragma once

#include <cmath>
#include <set>
#include <string>

#include <rapidcheck.h>

#include "model/json/value.h"

namespace foretrain {

inline std::string random_text() {
  return *rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::inRange<char>(0x20, 0x7f),
                     rc::gen::element('"', '\\', '\n', '\t', '/', ',', ':', '{', '}', '\x01')));
}

inline JsonValue random_json(int depth = 3) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0:
      return JsonValue::make_null();
    case 1:
      return JsonValue::make_bool(*rc::gen::arbitrary<bool>());
    case 2:
      return JsonValue::make_integer(*rc::gen::arbitrary<std::int64_t>());
    case 3: {
      const double number = *rc::gen::arbitrary<double>();
      return std::isfinite(number) ? JsonValue::make_number(number) : JsonValue::make_integer(0);
    }
    case 4:
      return JsonValue::make_string(random_text());
    case 5: {
      JsonValue array = JsonValue::make_array();
      const int count = *rc::gen::inRange(0, 5);
      for (int i = 0; i < count; ++i) array.append(random_json(depth - 1));
      return array;
    }
    default: {
      JsonValue object = JsonValue::make_object();
      const int count = *rc::gen::inRange(0, 5);
      for (int i = 0; i < count; ++i) object.set(random_text(), random_json(depth - 1));
      return object;
    }
  }
}

}  // namespace foretrain
