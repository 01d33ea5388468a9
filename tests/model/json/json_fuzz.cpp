// Any bytes as JSON: never a crash; what is accepted is written and read back to the same text, every value
// is found by its path, and every error has a place.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/json/edit.h"
#include "model/json/parse.h"
#include "model/json/reader.h"
#include "model/json/write.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_paths(const foretrain::JsonValue& root, const foretrain::JsonValue& value, int& budget) {
  if (--budget < 0) return;
  const foretrain::JsonValue* found = foretrain::find_path(root, value.path());
  require(found == &value || found == nullptr);  // nullptr: deeper than a path may be
  require(value.where().line >= 1 && value.where().column >= 1);
  for (const foretrain::JsonValue& child : value.children()) check_paths(root, child, budget);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = foretrain::parse_json(text, "f");
  if (!value) {
    require(!value.error().empty());
    for (const foretrain::Error& error : value.error()) {
      require(error.where.line >= 1 && error.where.column >= 1 && !error.message.empty());
    }
    foretrain::JsonValue root = foretrain::JsonValue::make_object();
    const std::size_t split = size / 2;
    (void)foretrain::set_path(root, text.substr(0, split), text.substr(split));
    (void)foretrain::apply_override(root, text);
    return 0;
  }
  int budget = 200;
  check_paths(*value, *value, budget);
  const std::string compact = foretrain::to_compact_text(*value);
  const auto again = foretrain::parse_json(foretrain::to_text(*value), "f");
  require(again.has_value() && foretrain::to_compact_text(*again) == compact);

  foretrain::Errors errors;
  foretrain::ObjectReader reader(*value, errors);
  int whole = 0;
  double number = 0;
  foretrain::Bytes bytes;
  std::vector<int> list;
  reader.optional("a", whole, {1, 8});
  reader.optional("b", number, {0.0, 1.0});
  reader.optional("c", bytes);
  reader.optional_list("d", list);
  reader.finish();
  foretrain::JsonValue merged = *value;
  foretrain::merge(merged, *again);
  return 0;
}
