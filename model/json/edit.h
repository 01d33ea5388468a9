// Changes to a document before it is read: `--set path=value`, what-ifs, cells of a case table, inheritance.
//
// A path is member names joined by ".", items in brackets from 0: parallel.tp, cluster.nodes[1].gpu. A name
// that has a dot, bracket or quote is written ["as.this"], as JsonValue::path() does.
#pragma once

#include <string>
#include <string_view>

#include "model/base/error.h"
#include "model/json/value.h"

namespace foretrain {

// The value at a path, or nullptr when there is none or the path is malformed. "" is the root.
const JsonValue* find_path(const JsonValue& root, std::string_view path);

// Sets the value at a path; makes objects on the way; an index may be one past the end to append. The text is
// taken as JSON if it is a JSON number, true, false, null or starts with a double quote, [ or {; else it is a
// string, so that "16 GB/s" needs no quotes. The new value is located at `where` (file, line, column).
// Errors: malformed path, a step through something that is not an object, an index out of range, malformed
// JSON.
Expected<void> set_path(JsonValue& root, std::string_view path, std::string_view text, const Location& where);
// The same, located at file "--set PATH=TEXT".
Expected<void> set_path(JsonValue& root, std::string_view path, std::string_view text);
Expected<void> set_path(JsonValue& root, std::string_view path, JsonValue value);
// Splits "path=value" at its first "=" and sets it.
Expected<void> apply_override(JsonValue& root, std::string_view assignment);

// Lays `overlay` over `base`: objects are merged member by member, anything else replaces; null removes the
// member (RFC 7396). Values keep the file and line they came from.
void merge(JsonValue& base, const JsonValue& overlay);

}  // namespace foretrain
