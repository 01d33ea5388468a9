#include "model/json/parse.h"

#include <functional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/json/write.h"
#include "tests/model/json/random_json.h"

namespace foretrain {
namespace {

JsonValue parsed(std::string_view text) {
  auto value = parse_json(text, "f.json");
  EXPECT_TRUE(value.has_value()) << (value ? "" : to_text(value.error()));
  return value ? *value : JsonValue{};
}

void expect_at(const Location& where, int line, int column, std::string_view path) {
  EXPECT_EQ(where.file, "f.json");
  EXPECT_EQ(where.line, line);
  EXPECT_EQ(where.column, column);
  EXPECT_EQ(where.path, path);
}

TEST(ParseJson, KnowsEveryTypeOfValue) {
  const JsonValue value =
      parsed(R"({"n": null, "b": true, "i": -7, "d": 2.50, "s": "x\n\u00e9", "a": [1, [2]], "o": {}})");
  EXPECT_TRUE(value.find("n")->is_null());
  EXPECT_TRUE(value.find("b")->as_bool());
  EXPECT_EQ(value.find("i")->as_integer(), -7);
  EXPECT_EQ(value.find("d")->as_double(), 2.5);
  EXPECT_EQ(value.find("d")->number_text(), "2.50");
  EXPECT_EQ(value.find("s")->as_string(), "x\n\u00e9");
  EXPECT_EQ(value.find("a")->children()[1].children()[0].as_integer(), 2);
  EXPECT_TRUE(value.find("o")->is_object());
  EXPECT_EQ(value.find("none"), nullptr);
}

TEST(ParseJson, KeepsTheOrderOfMembers) {
  const JsonValue value = parsed(R"({"z": 1, "a": 2, "m": 3})");
  std::string order;
  for (const JsonValue& member : value.children()) order += member.key();
  EXPECT_EQ(order, "zam");
}

TEST(ParseJson, LocatesValuesAndKeys) {
  const JsonValue value = parsed(
      "// first, \"a\": 1\n"
      "{ /* {, : */ \"model\" : {\n"
      "    \"layers\":12 , \"name\" :\"g\\\"p,t\"},\n"
      "  \"list\":[ 1,-2.5e3,{\"x.y\":true}, null ]\n"
      "}\n");
  expect_at(value.where(), 2, 1, "");
  const JsonValue& model = *value.find("model");
  expect_at(model.where(), 2, 24, "model");
  expect_at(model.key_where(), 2, 14, "model");
  expect_at(model.find("layers")->where(), 3, 14, "model.layers");
  expect_at(model.find("layers")->key_where(), 3, 5, "model.layers");
  expect_at(model.find("name")->where(), 3, 27, "model.name");
  const auto& list = value.find("list")->children();
  expect_at(list[0].where(), 4, 12, "list[0]");
  expect_at(list[1].where(), 4, 14, "list[1]");
  expect_at(list[2].children()[0].where(), 4, 28, "list[2][\"x.y\"]");
  expect_at(list[3].where(), 4, 35, "list[3]");
}

TEST(ParseJson, ColumnsCountCharacters) {
  const JsonValue value = parsed("{\"\u00e9\u20ac\": 1, \"b\": 2}");
  expect_at(value.find("b")->where(), 1, 16, "b");
}

TEST(ParseJson, SkipsAByteOrderMark) {
  expect_at(parsed("\xEF\xBB\xBF[1]").children()[0].where(), 1, 2, "[0]");
}

TEST(ParseJson, WholeNumbersAreExact) {
  EXPECT_EQ(parsed("9223372036854775807").as_integer(), 9223372036854775807);
  EXPECT_EQ(parsed("-9223372036854775808").as_integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parsed("9223372036854775808").type(), JsonType::number);
  EXPECT_EQ(parsed("1e3").type(), JsonType::number);
  EXPECT_EQ(parsed("1e3").as_double(), 1000);
}

TEST(ParseJson, LimitsAreErrors) {
  JsonLimits limits;
  limits.max_depth = 3;
  EXPECT_TRUE(parse_json("[[[1]]]", "f", limits).has_value());
  EXPECT_EQ(to_text(parse_json("[[[[1]]]]", "f", limits).error()), "f:1:4: is nested more than 3 deep");
  limits.max_values = 3;
  EXPECT_TRUE(parse_json("[1,2]", "f", limits).has_value());
  EXPECT_EQ(to_text(parse_json("[1,2,\n3]", "f", limits).error()),
            "f:2:1: there are more than 3 values, the most that is read");
  limits.max_bytes = 4;
  EXPECT_EQ(to_text(parse_json("[1,2]", "f", limits).error()), "f: is 5 bytes long; at most 4 are read");
}

TEST(ParseJson, ADeepDocumentDoesNotOverflowTheStack) {
  const std::string deep(1'000'000, '[');
  EXPECT_EQ(parse_json(deep, "f").error()[0].where.column, 201);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(parse_json(objects, "f").has_value());
}

TEST(ParseJson, LongKeysOverManyItemsStayLinear) {
  const std::string text = "{\"" + std::string(1'000'000, 'k') + "\":[" + [] {
    std::string items = "0";
    for (int i = 0; i < 200'000; ++i) items += ",0";
    return items;
  }() + "]}";
  EXPECT_TRUE(parse_json(text, "f").has_value());
}

TEST(ParseJson, EveryDuplicateKeyIsReportedWithBothPlaces) {
  const auto value = parse_json("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2},\n \"a\": {\"x\": 1}}", "f");
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(
      to_text(value.error()),
      "f:2:16: the key \"c\" is there twice; it was first written at 2:8\n  hint: remove one of the two\n"
      "f:3:2: the key \"a\" is there twice; it was first written at 1:2\n  hint: remove one of the two");
}

TEST(ParseJson, ReadsFiles) {
  EXPECT_EQ(parse_json_file("/no/such/file.json").error()[0].code, ErrorCode::io);
}

struct Malformed {
  std::string_view text;
  std::string_view error;  // without the hint
  std::string_view hint = "";
};
void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.text; }

class MalformedJson : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedJson, IsRefusedWithPlaceAndReason) {
  const auto value = parse_json(GetParam().text, "f");
  ASSERT_FALSE(value.has_value());
  ASSERT_EQ(value.error().size(), 1U);
  Error error = value.error()[0];
  EXPECT_EQ(error.hint, GetParam().hint);
  error.hint.clear();
  EXPECT_EQ(to_text(error), GetParam().error);
}

using std::string_view_literals::operator""sv;

const Malformed kMalformed[] = {
    // Truncated.
    {"", "f:1:1: is empty; expected a JSON document"},
    {" \n\t", "f:2:2: is empty; expected a JSON document"},
    {"// only a comment", "f:1:18: is empty; expected a JSON document"},
    {"{", "f:1:2: the text ends too early; the \"{\" of line 1, column 1 is not closed"},
    {"{\"a\"", "f:1:5: the text ends too early; the \"{\" of line 1, column 1 is not closed"},
    {"{\"a\":", "f:1:6: the text ends too early; the \"{\" of line 1, column 1 is not closed"},
    {"{\"a\":1", "f:1:7: the text ends too early; the \"{\" of line 1, column 1 is not closed"},
    {"{\"a\":1,", "f:1:8: the text ends too early; the \"{\" of line 1, column 1 is not closed"},
    {"{\n \"a\": [1, 2", "f:2:12: the text ends too early; the \"[\" of line 2, column 7 is not closed"},
    {"[1, 2,\n", "f:2:1: the text ends too early; the \"[\" of line 1, column 1 is not closed"},
    {"[\"abc", "f:1:2: the string is not closed", "end it with a double quote on the same line"},
    {"{\"abc", "f:1:2: the string is not closed", "end it with a double quote on the same line"},
    {"{\"a\": \"b\n\"}", "f:1:7: the string is not closed", "end it with a double quote on the same line"},
    {"[tru", "f:1:2: found \"tru\"; expected a value", "a string is written in double quotes: \"tru\""},
    {"[-", "f:1:2: \"-\" is not a number", "digits must follow \"-\", \".\" and \"e\""},
    {"[1 /* a", "f:1:4: the comment is not closed", "end it with */"},
    // Commas and brackets.
    {"[1,]", "f:1:4: found \"]\"; expected a value", "remove the comma before \"]\""},
    {"{\"a\":1,}", "f:1:8: found \"}\"; expected a key in double quotes", "remove the comma before \"}\""},
    {"{\"a\":1, // last\n}", "f:2:1: found \"}\"; expected a key in double quotes",
     "remove the comma before \"}\""},
    {"[,1]", "f:1:2: found \",\"; expected a value"},
    {"[1,,2]", "f:1:4: found \",\"; expected a value"},
    {"[1 2]", "f:1:4: found \"2\"; expected \",\" or \"]\"", "put a comma before it"},
    {"{\"a\": 1\n \"b\": 2}", "f:2:2: found the string \"b\"; expected \",\" or \"}\"",
     "put a comma before it"},
    {"{\"a\" 1}", "f:1:6: found \"1\"; expected \":\" after the key"},
    {"{\"a\", 1}", "f:1:5: found \",\"; expected \":\" after the key"},
    {"{\"a\"}", "f:1:5: found \"}\"; expected \":\" after the key"},
    {"{\"a\":}", "f:1:6: found \"}\"; expected a value"},
    {"{\"a\"::1}", "f:1:6: found \":\"; expected a value"},
    {"{1: 2}", "f:1:2: found \"1\"; expected a key in double quotes or \"}\""},
    {"{null: 2}", "f:1:2: found \"null\"; expected a key in double quotes or \"}\""},
    {"[\"a\": 1]", "f:1:5: found \":\"; expected \",\" or \"]\"", "only members of an object have keys"},
    {"{\"a\": [1, 2}", "f:1:12: found \"}\"; expected \",\" or \"]\"",
     "the \"[\" of line 1, column 7 is closed by \"}\""},
    {"[{\"a\": 1]", "f:1:9: found \"]\"; expected \",\" or \"}\"",
     "the \"{\" of line 1, column 2 is closed by \"]\""},
    {"}", "f:1:1: found \"}\"; expected a value"},
    {"]", "f:1:1: found \"]\"; expected a value"},
    {",", "f:1:1: found \",\"; expected a value"},
    // Trailing text.
    {"{} {}", "f:1:4: found \"{\"; expected nothing after the document's end"},
    {"{}\n}", "f:2:1: found \"}\"; expected nothing after the document's end"},
    {"1 2", "f:1:3: found \"2\"; expected nothing after the document's end"},
    {"[] x", "f:1:4: found \"x\"; expected nothing after the document's end"},
    {"\"a\" \"b\"", "f:1:5: found the string \"b\"; expected nothing after the document's end"},
    // Words.
    {"{a: 1}", "f:1:2: found \"a\"; expected a key in double quotes or \"}\"",
     "write the key in double quotes: \"a\""},
    {"{'a': 1}", "f:1:2: found \"'\"; expected a key in double quotes or \"}\"", "use double quotes"},
    {"['a']", "f:1:2: found \"'\"; expected a value", "use double quotes"},
    {"[True]", "f:1:2: found \"True\"; expected a value", "write true in lower case"},
    {"[None]", "f:1:2: found \"None\"; expected a value", "write null"},
    {"[yes]", "f:1:2: found \"yes\"; expected a value", "write true"},
    {"[off]", "f:1:2: found \"off\"; expected a value", "write false"},
    {"[nul]", "f:1:2: found \"nul\"; expected a value", "a string is written in double quotes: \"nul\""},
    {"[NaN]", "f:1:2: found \"NaN\"; expected a value", "JSON has no NaN and no infinity"},
    {"[Infinity]", "f:1:2: found \"Infinity\"; expected a value", "JSON has no NaN and no infinity"},
    {"[-Infinity]", "f:1:2: \"-Infinity\" is not a number", "JSON has no NaN and no infinity"},
    {"{\"a\": fp32}", "f:1:7: found \"fp32\"; expected a value",
     "a string is written in double quotes: \"fp32\""},
    {"[1] # note", "f:1:5: found \"#\"; expected nothing after the document's end", "comments begin with //"},
    {"[/ 1]", "f:1:2: found \"/\"; expected a value or a comment", "comments begin with // or /*"},
    // Numbers.
    {"[1e999]", "f:1:2: the number \"1e999\" is too large"},
    {"{\"a\": -1e400}", "f:1:7: the number \"-1e400\" is too large"},
    {"[01]", "f:1:3: found \"1\"; expected \",\" or \"]\"", "a number cannot begin with 0"},
    {"[+1]", "f:1:2: found \"+1\"; expected a value", "leave the \"+\" out"},
    {"[.5]", "f:1:2: found \".5\"; expected a value", "write a digit before the decimal point"},
    {"[5.]", "f:1:2: \"5.\" is not a number", "digits must follow \"-\", \".\" and \"e\""},
    {"[1e]", "f:1:2: \"1e\" is not a number", "digits must follow \"-\", \".\" and \"e\""},
    {"[0x10]", "f:1:3: found \"x10\"; expected \",\" or \"]\"", "put the value in double quotes"},
    {"[16 GB]", "f:1:5: found \"GB\"; expected \",\" or \"]\"", "put the value in double quotes"},
    // Strings.
    {"[\"\t\"]", "f:1:3: the control character 0x09 is in a string", "write it as \\u0009 or \\t"},
    {"[\"a\x01\"]", "f:1:4: the control character 0x01 is in a string", "write it as \\u0001"},
    {"[\"\\x\"]", "f:1:4: invalid string: forbidden character after backslash",
     "a backslash in a string is written \\\\"},
    {"[\"\\u12g4\"]", "f:1:7: invalid string: '\\u' must be followed by 4 hex digits",
     "a backslash in a string is written \\\\"},
    {"[\"\\ud800\"]", "f:1:9: invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF",
     "a backslash in a string is written \\\\"},
    // Bytes.
    {"\xEF\xBB\xBF\xEF\xBB\xBF[1]", "f:1:1: begins with two byte order marks; expected one at most"},
    {"[\"\xff\"]", "f:1:3: the byte 0xff is not valid UTF-8", "save the file as UTF-8"},
    {"// \xc3\n{}", "f:1:4: the byte 0xc3 is not valid UTF-8", "save the file as UTF-8"},
    {"{}\0{}"sv, "f:1:3: there is a NUL byte; expected text"},
    {"\xff\xfe{\0}\0"sv, "f:1:1: is UTF-16; expected UTF-8", "save the file as UTF-8"},
};

INSTANTIATE_TEST_SUITE_P(Corpus, MalformedJson, testing::ValuesIn(kMalformed));

RC_GTEST_PROP(ParseJson, WrittenDocumentsReadBackEqual, ()) {
  const JsonValue value = random_json();
  const auto pretty = parse_json(to_text(value), "f");
  const auto compact = parse_json(to_compact_text(value), "f");
  RC_ASSERT(pretty.has_value());
  RC_ASSERT(compact.has_value());
  RC_ASSERT(to_compact_text(*pretty) == to_compact_text(value));
  RC_ASSERT(to_text(*compact) == to_text(value));
}

// Every prefix of a container is an error, which never names a place beyond the text.
RC_GTEST_PROP(ParseJson, EveryTruncationIsRefused, ()) {
  const std::string whole = "{\"a\":" + to_compact_text(random_json()) + "}";
  const auto length = *rc::gen::inRange<std::size_t>(0, whole.size());
  const auto value = parse_json(std::string_view(whole).substr(0, length), "f");
  RC_ASSERT(!value.has_value());
  RC_ASSERT(value.error()[0].where.line == 1);
  RC_ASSERT(value.error()[0].where.column <= static_cast<int>(length) + 1);
}

// A value stands where the text says: reading on from its place gives the value again.
RC_GTEST_PROP(ParseJson, TheTextAtAPlaceIsTheValue, ()) {
  const std::string text = to_text(random_json());
  std::vector<std::string> lines(1);
  for (const char c : text) {
    lines.back() += c;
    if (c == '\n') lines.emplace_back();
  }
  const auto root = parse_json(text, "f");
  RC_ASSERT(root.has_value());
  const std::function<void(const JsonValue&)> check = [&](const JsonValue& value) {
    const Location where = value.where();
    std::string rest =
        lines[static_cast<std::size_t>(where.line) - 1].substr(static_cast<std::size_t>(where.column) - 1);
    const std::string compact = to_compact_text(value);
    if (value.is_object() || value.is_array()) {
      RC_ASSERT(rest.front() == compact.front());
    } else {
      RC_ASSERT(rest.starts_with(compact));
    }
    for (const JsonValue& child : value.children()) check(child);
  };
  check(*root);
}

}  // namespace
}  // namespace foretrain
