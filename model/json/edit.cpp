#include "model/json/edit.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/text.h"
#include "model/json/parse.h"

namespace foretrain {
namespace {

constexpr std::size_t kMaxSteps = 100;

struct Step {
  std::string name;
  std::optional<std::size_t> index;  // an item of an array instead of a member
};

tl::unexpected<Errors> bad_path(std::string_view path, std::string_view reason) {
  return fail(ErrorCode::input, fmt::format("{} is not a path: {}", in_quotes(path), reason),
              "write names joined by dots, items in brackets: cluster.nodes[1].gpu");
}

// The step in brackets at the start of `rest`, which is shortened by it.
Expected<Step> bracket_step(std::string_view path, std::string_view& rest) {
  if (rest.starts_with("[\"")) {
    std::size_t end = 2;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    if (end + 1 >= rest.size() || rest[end + 1] != ']') return bad_path(path, "a [\"name\"] is not closed");
    const Expected<JsonValue> name = parse_json(rest.substr(1, end), "");
    if (!name) return bad_path(path, "a [\"name\"] is not a JSON string");
    rest.remove_prefix(end + 2);
    return Step{name->as_string(), std::nullopt};
  }
  const std::size_t close = rest.find(']');
  if (close == std::string_view::npos) return bad_path(path, "a bracket is not closed");
  std::size_t index = 0;
  const char* end = rest.data() + close;
  const auto [stop, error] = std::from_chars(rest.data() + 1, end, index);
  if (error != std::errc{} || stop != end)
    return bad_path(path, "a whole number from 0 must stand in brackets");
  rest.remove_prefix(close + 1);
  return Step{{}, index};
}

Expected<std::vector<Step>> split_path(std::string_view path) {
  std::vector<Step> steps;
  std::string_view rest = path;
  while (!rest.empty()) {
    Step step;
    if (rest.front() == '[') {
      Expected<Step> bracket = bracket_step(path, rest);
      if (!bracket) return fail(bracket.error());
      step = std::move(*bracket);
    } else {
      if (!steps.empty() && rest.front() != '.') return bad_path(path, "a dot is missing after a bracket");
      if (!steps.empty()) rest.remove_prefix(1);
      const std::size_t end = std::min(rest.find_first_of(".[]\""), rest.size());
      if (end == 0) return bad_path(path, "a name is empty");
      if (end < rest.size() && (rest[end] == ']' || rest[end] == '"')) {
        return bad_path(path, "a bracket or quote stands in a name");
      }
      step.name = std::string(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    steps.push_back(std::move(step));
    if (steps.size() > kMaxSteps) return bad_path(path, fmt::format("it has more than {} steps", kMaxSteps));
  }
  return steps;
}

std::string type_words(const JsonValue& value) {
  switch (value.type()) {
    case JsonType::null:
      return "null";
    case JsonType::boolean:
      return value.as_bool() ? "true" : "false";
    case JsonType::integer:
    case JsonType::number:
      return "a number";
    case JsonType::string:
      return "a string";
    case JsonType::array:
      return "an array";
    case JsonType::object:
      return "an object";
  }
  return "a value";
}

std::string shown_path(const JsonValue& value) {
  const std::string path = value.path();
  return path.empty() ? "the document" : path;
}

Expected<JsonValue> value_of_text(std::string_view text, const Location& where) {
  const std::string_view trimmed = trim(text);
  const bool must_be_json =
      !trimmed.empty() && std::string_view("\"[{").find(trimmed.front()) != std::string_view::npos;
  const bool may_be_json =
      trimmed == "true" || trimmed == "false" || trimmed == "null" ||
      (!trimmed.empty() && (trimmed.front() == '-' || (trimmed.front() >= '0' && trimmed.front() <= '9')));
  if (must_be_json || may_be_json) {
    Expected<JsonValue> value = parse_json(trimmed, where.file);
    if (value) return value;
    if (must_be_json) {
      Errors errors = value.error();
      for (Error& error : errors) error.where = where;
      return fail(std::move(errors));
    }
  }
  if (const auto bad = find_invalid_utf8(text)) {
    return fail(Error{ErrorCode::input, where, fmt::format("{} is not valid UTF-8", in_quotes(text)), {}});
  }
  return JsonValue::make_string(std::string(text));
}

// The child that a step leads to, made when it is absent.
Expected<JsonValue*> step_into(JsonValue& parent, const Step& step) {
  if (!step.index) {
    if (!parent.is_object() && !parent.is_null()) {
      return fail(ErrorCode::input,
                  fmt::format("{} is {}; expected an object that can have {}", shown_path(parent),
                              type_words(parent), in_quotes(step.name)));
    }
    if (JsonValue* child = parent.find(step.name)) return child;
    return &parent.set(step.name, JsonValue::make_null());
  }
  if (!parent.is_array() && !parent.is_null()) {
    return fail(ErrorCode::input, fmt::format("{} is {}; expected an array that can have [{}]",
                                              shown_path(parent), type_words(parent), *step.index));
  }
  if (JsonValue* child = parent.item(*step.index)) return child;
  if (*step.index == parent.children().size()) return &parent.append(JsonValue::make_null());
  return fail(ErrorCode::input, fmt::format("{} has {} items; there is no [{}]", shown_path(parent),
                                            parent.children().size(), *step.index));
}

Expected<void> assign(JsonValue& root, std::string_view path, JsonValue value) {
  Expected<std::vector<Step>> steps = split_path(path);
  if (!steps) return fail(steps.error());
  if (steps->empty())
    return fail(ErrorCode::input, "the path is empty; expected the name of a setting", "write path=value");
  // The walk makes what is absent, so it goes over a copy first: nothing changes when a later step fails.
  JsonValue changed = root;
  JsonValue* target = &changed;
  for (const Step& step : *steps) {
    const Expected<JsonValue*> child = step_into(*target, step);
    if (!child) return fail(child.error());
    target = *child;
  }
  target->replace(std::move(value));
  root = std::move(changed);
  return {};
}

Errors located_at(Errors errors, const Location& where) {
  for (Error& error : errors) {
    if (error.where.file.empty()) error.where = where;
  }
  return errors;
}

}  // namespace

const JsonValue* find_path(const JsonValue& root, std::string_view path) {
  const Expected<std::vector<Step>> steps = split_path(path);
  if (!steps) return nullptr;
  const JsonValue* value = &root;
  for (const Step& step : *steps) {
    if (step.index) {
      if (!value->is_array() || *step.index >= value->children().size()) return nullptr;
      value = &value->children()[*step.index];
    } else {
      value = value->find(step.name);
      if (value == nullptr) return nullptr;
    }
  }
  return value;
}

Expected<void> set_path(JsonValue& root, std::string_view path, std::string_view text,
                        const Location& where) {
  Expected<JsonValue> value = value_of_text(text, where);
  if (!value) return fail(value.error());
  value->set_origin_of_all(where);
  Expected<void> done = assign(root, path, std::move(*value));
  if (!done) return fail(located_at(done.error(), where));
  return {};
}

Expected<void> set_path(JsonValue& root, std::string_view path, std::string_view text) {
  return set_path(root, path, text, Location{fmt::format("--set {}={}", path, text), 0, 0, {}});
}

Expected<void> set_path(JsonValue& root, std::string_view path, JsonValue value) {
  return assign(root, path, std::move(value));
}

Expected<void> apply_override(JsonValue& root, std::string_view assignment) {
  // A quoted name may hold "=", so the first "=" outside of brackets counts.
  std::size_t equals = assignment.find('=');
  if (const std::size_t quote = assignment.find("[\""); quote < equals) {
    const std::size_t close = assignment.find("\"]", quote);
    equals = close == std::string_view::npos ? equals : assignment.find('=', close);
  }
  if (equals == std::string_view::npos || equals == 0) {
    return fail(ErrorCode::usage,
                fmt::format("{} is not an assignment; expected path=value", in_quotes(assignment)),
                "such as --set parallel.tp=4");
  }
  return set_path(root, trim(assignment.substr(0, equals)), assignment.substr(equals + 1));
}

void merge(JsonValue& base, const JsonValue& overlay) {
  if (!overlay.is_object()) {
    base.replace(overlay);
    return;
  }
  if (!base.is_object()) {
    JsonValue empty = JsonValue::make_object();
    empty.set_origin(overlay.where());
    empty.set_key_origin(overlay.key_where());
    base.replace(std::move(empty));
  }
  for (const JsonValue& member : overlay.children()) {
    if (member.is_null()) {
      base.remove(member.key());
    } else if (JsonValue* existing = base.find(member.key())) {
      merge(*existing, member);
    } else {
      merge(base.set(member.key(), JsonValue::make_null()), member);
    }
  }
}

}  // namespace foretrain
