#include "model/base/text.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace foretrain {
namespace {

using std::string_view_literals::operator""sv;

// The textbook recursion, exponential, for short words.
std::size_t slow_distance(std::string_view a, std::string_view b) {
  if (a.empty()) return b.size();
  if (b.empty()) return a.size();
  const auto first = a.substr(0, a.size() - 1);
  const auto second = b.substr(0, b.size() - 1);
  std::size_t best = std::min({slow_distance(first, b) + 1, slow_distance(a, second) + 1,
                               slow_distance(first, second) + (a.back() == b.back() ? 0 : 1)});
  if (a.size() > 1 && b.size() > 1 && a.back() == b[b.size() - 2] && b.back() == a[a.size() - 2]) {
    best = std::min(best, slow_distance(a.substr(0, a.size() - 2), b.substr(0, b.size() - 2)) + 1);
  }
  return best;
}

std::string short_word() {
  return *rc::gen::resize(5, rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c')));
}

RC_GTEST_PROP(EditDistance, EqualsTheRecursion, ()) {
  const std::string a = short_word();
  const std::string b = short_word();
  RC_ASSERT(edit_distance(a, b) == slow_distance(a, b));
}

TEST(EditDistance, OfKnownWords) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("parallel", "parralel"), 2U);
  EXPECT_EQ(edit_distance("tp", "pt"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
}

TEST(Nearest, FindsMisspellings) {
  const std::vector<std::string> keys = {"parallel", "precision", "profile", "tp", "pp", "bucket_size"};
  EXPECT_EQ(nearest("paralel", keys), "parallel");
  EXPECT_EQ(nearest("Precision", keys), "precision");
  EXPECT_EQ(nearest("bucketsize", keys), "bucket_size");
  EXPECT_EQ(nearest("pt", keys), "tp");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> keys = {"parallel", "tp", "x"};
  EXPECT_EQ(nearest("optimizer", keys), std::nullopt);
  EXPECT_EQ(nearest("", keys), std::nullopt);
  EXPECT_EQ(nearest("q", keys), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'a'), keys), std::nullopt);
  EXPECT_EQ(nearest("tp", std::vector<std::string>{}), std::nullopt);
}

TEST(DidYouMean, ListsTheNamesWhenNoneIsNear) {
  const std::vector<std::string_view> keys = {"tp", "pp"};
  EXPECT_EQ(did_you_mean("tpp", keys), "did you mean \"tp\"?");
  EXPECT_EQ(did_you_mean("optimizer", keys, "keys"), "known keys: tp, pp");
  EXPECT_EQ(did_you_mean("optimizer", {}), "");
}

TEST(Text, TrimAndSplit) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_EQ(to_lower("GiB/S"), "gib/s");
  EXPECT_TRUE(equals_ignoring_case("MiB", "mib"));
  EXPECT_FALSE(equals_ignoring_case("MiB", "mi"));
}

TEST(Text, QuotesShowControlCharactersAndCutLongText) {
  EXPECT_EQ(in_quotes("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(in_quotes("a\nb\x01"sv), "\"a\\nb\\u0001\"");
  EXPECT_EQ(in_quotes("\xff"), "\"\\xff\"");
  EXPECT_EQ(in_quotes("abcdef", 3), "\"abc...\"");
}

TEST(Utf8, AcceptsValidAndFindsTheFirstInvalidByte) {
  EXPECT_EQ(find_invalid_utf8("a\u00e9\u20ac\U0001F600"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("a\xff"), 1U);
  EXPECT_EQ(find_invalid_utf8("ab\xc3"), 2U);            // truncated
  EXPECT_EQ(find_invalid_utf8("\xc0\x80"), 0U);          // overlong NUL
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\x80"), 0U);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xed\xa0\x80"), 0U);      // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U);  // beyond U+10FFFF
  EXPECT_EQ(find_invalid_utf8("x\x80"), 1U);             // lone continuation
}

TEST(TextPosition, CountsCodePointsAndLines) {
  const std::string_view text = "ab\n\u00e9x\n";
  EXPECT_EQ(position_at(text, 0).column, 1);
  EXPECT_EQ(position_at(text, 3).line, 2);
  EXPECT_EQ(position_at(text, 5).column, 2);  // after the two bytes of one character
  EXPECT_EQ(position_at(text, 1000).line, 3);
}

}  // namespace
}  // namespace foretrain
