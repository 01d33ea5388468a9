#include "model/json/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/json/parse.h"

namespace foretrain {
namespace {

enum class Colour { red, green };
constexpr EnumName<Colour> kColours[] = {{"red", Colour::red}, {"green", Colour::green}};

JsonValue parsed(std::string_view text) { return parse_json(text, "f").value(); }

TEST(ObjectReader, ReadsEveryType) {
  const JsonValue value =
      parsed(R"({"i": 8, "l": 300e9, "d": 0.5, "b": true, "s": "x", "by": "25 MiB", "bw": "16 GB/s",
      "t": "50 us", "f": "165 TFLOPS", "c": "green", "p": "165 W", "list": [1, 2], "names": ["a"], "o": {"x": 1}})");
  Errors errors;
  ObjectReader reader(value, errors);
  int i = 0;
  std::int64_t l = 0;
  double d = 0, power = 0;
  bool b = false;
  std::string s;
  Bytes bytes;
  Bandwidth bandwidth;
  Time time;
  FlopRate rate;
  Colour colour{};
  std::vector<int> list;
  std::vector<std::string> names;
  EXPECT_TRUE(reader.required("i", i, {1, 8}));
  EXPECT_TRUE(reader.required("l", l));
  EXPECT_TRUE(reader.required("d", d, {0.0, 1.0}));
  EXPECT_TRUE(reader.required("b", b));
  EXPECT_TRUE(reader.required("s", s));
  EXPECT_TRUE(reader.required("by", bytes, {kMiB}));
  EXPECT_TRUE(reader.required("bw", bandwidth));
  EXPECT_TRUE(reader.required("t", time));
  EXPECT_TRUE(reader.required("f", rate));
  EXPECT_TRUE(reader.required_choice("c", colour, kColours));
  EXPECT_TRUE(reader.required_quantity("p", Dimension::power, power));
  EXPECT_TRUE(reader.required_list("list", list, {1, 2}));
  EXPECT_TRUE(reader.required_list("names", names));
  ASSERT_NE(reader.required_object("o"), nullptr);
  EXPECT_TRUE(reader.finish()) << to_text(errors);
  EXPECT_EQ(i, 8);
  EXPECT_EQ(l, 300'000'000'000);
  EXPECT_EQ(d, 0.5);
  EXPECT_TRUE(b);
  EXPECT_EQ(s, "x");
  EXPECT_EQ(bytes.count(), 26'214'400);
  EXPECT_EQ(bandwidth.gb_per_s(), 16);
  EXPECT_EQ(time.us(), 50);
  EXPECT_EQ(rate.tflops(), 165);
  EXPECT_EQ(colour, Colour::green);
  EXPECT_EQ(power, 165);
  EXPECT_EQ(list, (std::vector<int>{1, 2}));
  EXPECT_EQ(names, (std::vector<std::string>{"a"}));
}

TEST(ObjectReader, ReportsEveryErrorAtOnceWithItsPlace) {
  const JsonValue value = parsed(
      "{\"parallel\": {\n"
      "  \"tp\": 2.5,\n"
      "  \"pp\": 0,\n"
      "  \"bucket\": 25,\n"
      "  \"precison\": \"fp32\"\n"
      "}}");
  Errors errors;
  ObjectReader root(value, errors);
  const JsonValue* parallel = root.required_object("parallel");
  ASSERT_NE(parallel, nullptr);
  ObjectReader reader(*parallel, errors);
  int tp = 7, pp = 7;
  Bytes bucket;
  std::string precision;
  EXPECT_FALSE(reader.required("tp", tp, {1, 1024}));
  EXPECT_FALSE(reader.required("pp", pp, {1}));
  EXPECT_FALSE(reader.optional("bucket", bucket));
  EXPECT_FALSE(reader.required("precision", precision));
  EXPECT_FALSE(reader.finish());
  EXPECT_FALSE(root.finish());
  EXPECT_EQ(tp, 7);
  EXPECT_EQ(to_text(errors),
            "f:2:9: parallel.tp: is 2.5; expected a whole number from 1 to 1024\n"
            "f:3:9: parallel.pp: is 0; expected a whole number from 1\n"
            "f:4:13: parallel.bucket: is 25; expected a number of bytes with its unit, such as \"25 MiB\"\n"
            "  hint: write the unit too, in double quotes\n"
            "f:1:14: parallel.precision: is missing\n"
            "f:5:3: parallel.precison: is not a known key\n"
            "  hint: did you mean \"precision\"?");
}

struct Wrong {
  std::string_view json;  // value of the key "v"
  std::string_view kind;
  std::string_view message;
  std::string_view hint = "";
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.kind << " " << wrong.json; }

bool read_as(ObjectReader& reader, std::string_view kind) {
  int i = 0;
  std::int64_t l = 0;
  double d = 0;
  bool b = false;
  std::string s;
  Bytes bytes;
  Bandwidth bandwidth;
  Time time;
  Colour colour{};
  std::vector<int> list;
  if (kind == "int") return reader.required("v", i);
  if (kind == "int64") return reader.required("v", l);
  if (kind == "degree") return reader.required("v", i, {1, 64});
  if (kind == "up to 5") return reader.required("v", i, {std::nullopt, 5});
  if (kind == "double") return reader.required("v", d);
  if (kind == "fraction") return reader.required("v", d, {0.0, 1.0});
  if (kind == "positive") return reader.required("v", d, {0.0, std::nullopt, true});
  if (kind == "bool") return reader.required("v", b);
  if (kind == "string") return reader.required("v", s);
  if (kind == "bytes") return reader.required("v", bytes, {kKiB, kGiB});
  if (kind == "bandwidth") return reader.required("v", bandwidth, {Bandwidth{}, std::nullopt, true});
  if (kind == "time") return reader.required("v", time);
  if (kind == "power") return reader.required_quantity("v", Dimension::power, d, {1.0, 2000.0});
  if (kind == "colour") return reader.required_choice("v", colour, kColours);
  if (kind == "list") return reader.required_list("v", list, {1});
  if (kind == "object") return reader.required_object("v") != nullptr;
  if (kind == "array") return reader.required_array("v") != nullptr;
  ADD_FAILURE() << "unknown kind " << kind;
  return true;
}

class ObjectReaderRefuses : public testing::TestWithParam<Wrong> {};

TEST_P(ObjectReaderRefuses, WithTheReason) {
  const JsonValue value = parsed("{\"v\": " + std::string(GetParam().json) + "}");
  Errors errors;
  ObjectReader reader(value, errors);
  EXPECT_FALSE(read_as(reader, GetParam().kind));
  EXPECT_FALSE(reader.ok());
  ASSERT_EQ(errors.size(), 1U) << to_text(errors);
  EXPECT_EQ(errors[0].message, GetParam().message);
  EXPECT_EQ(errors[0].hint, GetParam().hint);
  EXPECT_EQ(errors[0].where.line, 1);
  EXPECT_TRUE(errors[0].where.path.starts_with("v"));
}

constexpr Wrong kWrong[] = {
    {"2.5", "int", "is 2.5; expected a whole number"},
    {"1e99", "int", "is 1e99; expected a whole number"},
    {"1e99", "int64", "is 1e99; expected a whole number"},
    {"-1e99", "degree", "is -1e99; expected a whole number from 1 to 64"},
    {"3000000000", "int", "is 3000000000; expected a whole number", "the largest is 2147483647"},
    {"9223372036854775808", "int64", "is 9223372036854775808; expected a whole number"},
    {"\"8\"", "int", "is the string \"8\"; expected a whole number", "write 8 without the quotes"},
    {"\"abc\"", "int", "is the string \"abc\"; expected a whole number"},
    {"null", "int", "is null; expected a whole number"},
    {"true", "int", "is true; expected a whole number"},
    {"[]", "int", "is an array; expected a whole number"},
    {"{}", "int", "is an object; expected a whole number"},
    {"0", "degree", "is 0; expected a whole number from 1 to 64"},
    {"-1", "degree", "is -1; expected a whole number from 1 to 64"},
    {"65", "degree", "is 65; expected a whole number from 1 to 64"},
    {"6", "up to 5", "is 6; expected a whole number up to 5"},
    {"\"0.5\"", "double", "is the string \"0.5\"; expected a number", "write 0.5 without the quotes"},
    {"\"nan\"", "double", "is the string \"nan\"; expected a number"},
    {"1.5", "fraction", "is 1.5; expected a number from 0 to 1"},
    {"-0.1", "fraction", "is -0.1; expected a number from 0 to 1"},
    {"0", "positive", "is 0; expected a number above 0"},
    {"1", "bool", "is 1; expected true or false"},
    {"\"true\"", "bool", "is the string \"true\"; expected true or false", "write true without the quotes"},
    {"7", "string", "is 7; expected a string", "write \"7\""},
    {"null", "string", "is null; expected a string"},
    {"1048576", "bytes", "is 1048576; expected a number of bytes with its unit, such as \"25 MiB\"",
     "write the unit too, in double quotes"},
    {"\"1 mb\"", "bytes", "is \"1 mb\"; expected a number of bytes with its unit, such as \"25 MiB\"",
     "unknown unit \"mb\"; did you mean \"MB\"? Upper and lower case matter in units"},
    {"\"1 B\"", "bytes", "is \"1 B\"; expected a value from 1.00 KiB to 1.00 GiB"},
    {"\"2 GiB\"", "bytes", "is \"2 GiB\"; expected a value from 1.00 KiB to 1.00 GiB"},
    {"\"0 GB/s\"", "bandwidth", "is \"0 GB/s\"; expected a value above 0 B/s"},
    {"false", "time", "is false; expected a time with its unit, such as \"50 us\" or \"3 ms\""},
    {"\"5 kW\"", "power", "is \"5 kW\"; expected a value from 1 W to 2000 W"},
    {"\"gren\"", "colour", "is \"gren\"; expected one of red, green", "did you mean \"green\"?"},
    {"\"blue\"", "colour", "is \"blue\"; expected one of red, green"},
    {"1", "colour", "is 1; expected one of red, green"},
    {"[1, \"x\"]", "list", "is the string \"x\"; expected a whole number from 1"},
    {"{}", "list", "is an object; expected an array"},
    {"[]", "object", "is an array; expected an object"},
    {"{}", "array", "is an object; expected an array"},
};

INSTANTIATE_TEST_SUITE_P(Corpus, ObjectReaderRefuses, testing::ValuesIn(kWrong));

TEST(ObjectReader, OptionalKeysMayBeAbsent) {
  const JsonValue value = parsed(R"({"tp": 4})");
  Errors errors;
  ObjectReader reader(value, errors);
  int dp = 3;
  std::optional<int> tp, pp;
  EXPECT_FALSE(reader.optional("dp", dp));
  EXPECT_TRUE(reader.optional("tp", tp));
  EXPECT_FALSE(reader.optional("pp", pp));
  EXPECT_TRUE(reader.finish());
  EXPECT_EQ(dp, 3);
  EXPECT_EQ(tp, 4);
  EXPECT_EQ(pp, std::nullopt);
}

TEST(ObjectReader, ListErrorsNameTheItem) {
  const JsonValue value = parsed(R"({"v": [1, 0, 2, -1]})");
  Errors errors;
  ObjectReader reader(value, errors);
  std::vector<int> list = {9};
  EXPECT_FALSE(reader.required_list("v", list, {1}));
  EXPECT_EQ(list, (std::vector<int>{9}));
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].where.path, "v[1]");
  EXPECT_EQ(errors[1].where.path, "v[3]");
}

TEST(ObjectReader, AValueThatIsNoObjectIsOneError) {
  const JsonValue value = parsed("[1]");
  Errors errors;
  ObjectReader reader(value, errors);
  int tp = 0;
  EXPECT_FALSE(reader.required("tp", tp));
  EXPECT_FALSE(reader.has("tp"));
  EXPECT_FALSE(reader.finish());
  EXPECT_EQ(to_text(errors), "f:1:1: is an array; expected an object");
}

TEST(ObjectReader, UnknownKeysListWhatIsKnown) {
  const JsonValue value = parsed(R"({"x": 1, "tp": 2, "zero": 3})");
  Errors errors;
  ObjectReader reader(value, errors);
  reader.ignore("tp");
  reader.ignore("pp");
  EXPECT_FALSE(reader.finish());
  EXPECT_EQ(to_text(errors),
            "f:1:2: x: is not a known key\n  hint: known keys: tp, pp\n"
            "f:1:19: zero: is not a known key\n  hint: known keys: tp, pp");
}

TEST(ObjectReader, ErrorsAcrossValuesStandAtTheirKey) {
  const JsonValue value = parsed(R"({"a": {"tp": 3}})");
  Errors errors;
  ObjectReader reader(*value.find("a"), errors);
  reader.error("tp", "does not divide the heads");
  reader.error("none", "is needed too");
  reader.error("", "is empty");
  EXPECT_EQ(to_text(errors),
            "f:1:14: a.tp: does not divide the heads\nf:1:7: a.none: is needed too\nf:1:7: a: is empty");
}

}  // namespace
}  // namespace foretrain
