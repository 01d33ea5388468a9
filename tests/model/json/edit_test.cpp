#include "model/json/edit.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/json/parse.h"
#include "model/json/write.h"
#include "tests/model/json/random_json.h"

namespace foretrain {
namespace {

using testing::HasSubstr;

JsonValue parsed(std::string_view text, const std::string& file = "f") {
  return parse_json(text, file).value();
}

std::string after_set(std::string_view document, std::string_view path, std::string_view text) {
  JsonValue root = parsed(document);
  const auto done = set_path(root, path, text);
  return done ? to_compact_text(root) : to_text(done.error());
}

TEST(SetPath, ReplacesAndAdds) {
  EXPECT_EQ(after_set(R"({"a":{"b":1},"c":2})", "a.b", "7"), R"({"a":{"b":7},"c":2})");
  EXPECT_EQ(after_set(R"({"a":{"b":1}})", "a.c", "x"), R"({"a":{"b":1,"c":"x"}})");
  EXPECT_EQ(after_set("{}", "a.b.c", "true"), R"({"a":{"b":{"c":true}}})");
  EXPECT_EQ(after_set(R"({"a":[1,2]})", "a[1]", "5"), R"({"a":[1,5]})");
  EXPECT_EQ(after_set(R"({"a":[1,2]})", "a[2]", "5"), R"({"a":[1,2,5]})");
  EXPECT_EQ(after_set(R"({"a":[{"b":1}]})", "a[0].b", "5"), R"({"a":[{"b":5}]})");
  EXPECT_EQ(after_set("{}", "a[0][0]", "1"), R"({"a":[[1]]})");
  EXPECT_EQ(after_set("{}", "[\"x.y\"].z", "1"), R"({"x.y":{"z":1}})");
}

TEST(SetPath, TextIsJsonWhenItLooksLikeIt) {
  EXPECT_EQ(after_set("{}", "a", "16 GB/s"), R"({"a":"16 GB/s"})");
  EXPECT_EQ(after_set("{}", "a", "1e3"), R"({"a":1e3})");
  EXPECT_EQ(after_set("{}", "a", "-0.5"), R"({"a":-0.5})");
  EXPECT_EQ(after_set("{}", "a", "null"), R"({"a":null})");
  EXPECT_EQ(after_set("{}", "a", "\"7\""), R"({"a":"7"})");
  EXPECT_EQ(after_set("{}", "a", "[1, {\"b\": 2}]"), R"({"a":[1,{"b":2}]})");
  EXPECT_EQ(after_set("{}", "a", ""), R"({"a":""})");
  EXPECT_EQ(after_set("{}", "a", "nan"), R"({"a":"nan"})");
  EXPECT_EQ(after_set("{}", "a", "1e999"), R"({"a":"1e999"})");
}

TEST(SetPath, ErrorsSayWhatIsWrongAndChangeNothing) {
  EXPECT_THAT(after_set("{}", "a", "[1,"), HasSubstr("--set a=[1,: the text ends too early"));
  EXPECT_THAT(after_set("{}", "", "1"), HasSubstr("the path is empty"));
  EXPECT_THAT(after_set("{}", "a..b", "1"), HasSubstr("a name is empty"));
  EXPECT_THAT(after_set("{}", "a.", "1"), HasSubstr("is not a path"));
  EXPECT_THAT(after_set("{}", ".a", "1"), HasSubstr("a name is empty"));
  EXPECT_THAT(after_set("{}", "a[", "1"), HasSubstr("a bracket is not closed"));
  EXPECT_THAT(after_set("{}", "a[x]", "1"), HasSubstr("a whole number from 0"));
  EXPECT_THAT(after_set("{}", "a[-1]", "1"), HasSubstr("a whole number from 0"));
  EXPECT_THAT(after_set("{}", "a[99999999999999999999]", "1"), HasSubstr("a whole number from 0"));
  EXPECT_THAT(after_set("{}", "a[0]b", "1"), HasSubstr("a dot is missing"));
  EXPECT_THAT(after_set("{}", "a]", "1"), HasSubstr("stands in a name"));
  EXPECT_THAT(after_set("{}", "[\"a", "1"), HasSubstr("is not closed"));
  EXPECT_THAT(after_set("{}", "[\"\\q\"]", "1"), HasSubstr("not a JSON string"));
  EXPECT_THAT(after_set(R"({"a":1})", "a.b", "1"),
              HasSubstr("a is a number; expected an object that can have \"b\""));
  EXPECT_THAT(after_set(R"({"a":{}})", "a[0]", "1"),
              HasSubstr("a is an object; expected an array that can have [0]"));
  EXPECT_THAT(after_set(R"({"a":[1]})", "a[2]", "1"), HasSubstr("a has 1 items; there is no [2]"));
  EXPECT_THAT(after_set("[]", "a", "1"), HasSubstr("the document is an array"));
  EXPECT_THAT(after_set("{}", "a", "\xff"), HasSubstr("not valid UTF-8"));
  std::string deep = "a";
  for (int i = 0; i < 200; ++i) deep += ".a";
  EXPECT_THAT(after_set("{}", deep, "1"), HasSubstr("more than 100 steps"));

  JsonValue root = parsed(R"({"a":{"x":1}})");
  EXPECT_FALSE(set_path(root, "a.y.z[3]", "1").has_value());
  EXPECT_EQ(to_compact_text(root), R"({"a":{"x":1}})");
}

TEST(SetPath, TheValueRemembersWhereItCameFrom) {
  JsonValue root = parsed(R"({"parallel": {"tp": 1}})");
  ASSERT_TRUE(set_path(root, "parallel.tp", "4"));
  const Location where = find_path(root, "parallel.tp")->where();
  EXPECT_EQ(where.file, "--set parallel.tp=4");
  EXPECT_EQ(where.line, 0);
  EXPECT_EQ(where.path, "parallel.tp");
  ASSERT_TRUE(set_path(root, "parallel.pp[0].x", "4", Location{"cases.csv", 3, 7, {}}));
  EXPECT_EQ(find_path(root, "parallel.pp[0].x")->where().line, 3);
  EXPECT_EQ(find_path(root, "parallel.pp[0].x")->where().path, "parallel.pp[0].x");
}

TEST(ApplyOverride, SplitsAtTheFirstEquals) {
  JsonValue root = parsed("{}");
  ASSERT_TRUE(apply_override(root, "a.b=x=y"));
  ASSERT_TRUE(apply_override(root, "[\"p=q\"]=1"));
  EXPECT_EQ(to_compact_text(root), R"({"a":{"b":"x=y"},"p=q":1})");
  EXPECT_EQ(apply_override(root, "a").error()[0].code, ErrorCode::usage);
  EXPECT_FALSE(apply_override(root, "=1").has_value());
}

TEST(FindPath, FindsOnlyWhatIsThere) {
  const JsonValue root = parsed(R"({"a": [{"b": 1}], "c.d": 2})");
  EXPECT_EQ(find_path(root, ""), &root);
  EXPECT_EQ(find_path(root, "a[0].b")->as_integer(), 1);
  EXPECT_EQ(find_path(root, "[\"c.d\"]")->as_integer(), 2);
  EXPECT_EQ(find_path(root, "a[1]"), nullptr);
  EXPECT_EQ(find_path(root, "a.b"), nullptr);
  EXPECT_EQ(find_path(root, "a[0].b.c"), nullptr);
  EXPECT_EQ(find_path(root, "a["), nullptr);
}

RC_GTEST_PROP(FindPath, EveryValueIsFoundByItsPath, ()) {
  const JsonValue root = random_json();
  const std::function<void(const JsonValue&)> check = [&](const JsonValue& value) {
    // The empty key has no way to be told from the root only when it is the root.
    RC_ASSERT(find_path(root, value.path()) == &value);
    for (const JsonValue& child : value.children()) check(child);
  };
  check(root);
}

TEST(Merge, LaysObjectsOverEachOther) {
  JsonValue base = parsed(R"({"a": {"x": 1, "y": 2}, "b": [1, 2], "c": 3})", "base");
  merge(base,
        parsed("{\"a\": {\"y\": 5, \"z\": 6},\n \"b\": [9], \"c\": null, \"d\": {\"e\": null, \"f\": 1}}",
               "over"));
  EXPECT_EQ(to_compact_text(base), R"({"a":{"x":1,"y":5,"z":6},"b":[9],"d":{"f":1}})");
  EXPECT_EQ(find_path(base, "a.x")->where().file, "base");
  EXPECT_EQ(find_path(base, "a.y")->where().file, "over");
  EXPECT_EQ(find_path(base, "b[0]")->where().line, 2);
  EXPECT_EQ(find_path(base, "d.f")->where().path, "d.f");
  EXPECT_EQ(find_path(base, "d")->where().file, "over");
}

// Cases of RFC 7396, appendix A.
TEST(Merge, FollowsTheRfc) {
  const std::vector<std::array<std::string_view, 3>> cases = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", R"(null)", R"(null)"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const auto& [target, patch, result] : cases) {
    JsonValue value = parsed(target);
    merge(value, parsed(patch));
    EXPECT_EQ(to_compact_text(value), result);
  }
}

TEST(JsonValue, CopiesAreIndependentAndRemoveRemoves) {
  JsonValue root = parsed(R"({"a": {"b": 1}, "c": 2})");
  const JsonValue copy = root;
  EXPECT_TRUE(root.remove("a"));
  EXPECT_FALSE(root.remove("a"));
  EXPECT_EQ(to_compact_text(copy), R"({"a":{"b":1},"c":2})");
  EXPECT_EQ(copy.find("a")->find("b")->path(), "a.b");
  JsonValue other = JsonValue::make_object();
  other.set("moved", *copy.find("a"));
  EXPECT_EQ(find_path(other, "moved.b")->path(), "moved.b");
}

TEST(ToText, IsPrettyAndStable) {
  EXPECT_EQ(
      to_text(parsed(R"({"z":1,"a":[1,2],"o":[{"x":[]}],"e":{}})")),
      "{\n  \"z\": 1,\n  \"a\": [1, 2],\n  \"o\": [\n    {\n      \"x\": []\n    }\n  ],\n  \"e\": {}\n}\n");
  EXPECT_EQ(json_quoted("a\x01\"\\\xff"), "\"a\\u0001\\\"\\\\\xEF\xBF\xBD\"");
}

TEST(ToText, NumbersThatAreNoneBecomeNull) {
  EXPECT_TRUE(JsonValue::make_number(std::numeric_limits<double>::infinity()).is_null());
  EXPECT_EQ(to_compact_text(JsonValue::make_number(0.1)), "0.1");
  EXPECT_EQ(to_compact_text(JsonValue::make_number(3.0)), "3");
}

}  // namespace
}  // namespace foretrain
