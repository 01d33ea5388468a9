#include "model/json/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/base/text.h"

namespace foretrain {
namespace {

using std::string_view_literals::operator""sv;

CsvTable parsed(std::string_view text) {
  auto table = parse_csv(text, "f.csv");
  EXPECT_TRUE(table.has_value()) << (table ? "" : to_text(table.error()));
  return table ? *table : CsvTable{};
}

TEST(ParseCsv, ReadsCellsByHeader) {
  const CsvTable table = parsed("name,tp\na,1\nb,2\n");
  ASSERT_EQ(table.rows(), 2U);
  ASSERT_EQ(table.columns(), 2U);
  EXPECT_EQ(table.find_column("tp"), 1U);
  EXPECT_EQ(table.find_column("pp"), std::nullopt);
  EXPECT_EQ(table.text(1, 0), "b");
  EXPECT_EQ(*table.require_column("name"), 0U);
  EXPECT_EQ(to_text(table.require_column("nane").error()),
            "f.csv:1:1: the column \"nane\" is missing\n  hint: is \"name\" meant? Rename it");
}

TEST(ParseCsv, QuotesCrlfByteOrderMarkAndBlankLines) {
  const CsvTable table =
      parsed("\xEF\xBB\xBFname,note\r\n\r\n\"a,b\",\"he said \"\"x\"\"\nand left\"\r\n\n\"\",\r\nc,d");
  ASSERT_EQ(table.rows(), 3U);
  EXPECT_EQ(table.header(0).text, "name");
  EXPECT_EQ(table.text(0, 0), "a,b");
  EXPECT_EQ(table.text(0, 1), "he said \"x\"\nand left");
  EXPECT_EQ(table.text(1, 0), "");
  EXPECT_EQ(table.text(2, 1), "d");
  EXPECT_EQ(table.cell(0, 1).line, 3);
  EXPECT_EQ(table.cell(0, 1).column, 7);
  EXPECT_EQ(table.cell(2, 1).line, 7);
  EXPECT_EQ(table.cell(2, 1).column, 3);
}

TEST(ParseCsv, AHeaderAloneHasNoRows) {
  EXPECT_EQ(parsed("a,b").rows(), 0U);
  EXPECT_EQ(parsed("a\n\"\"\n").rows(), 1U);
  EXPECT_EQ(CsvTable{}.rows(), 0U);
}

struct Malformed {
  std::string_view text;
  std::string_view errors;
};
void PrintTo(const Malformed& malformed, std::ostream* out) { *out << in_quotes(malformed.text); }

class MalformedCsv : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedCsv, IsRefusedWithPlaceAndReason) {
  const auto table = parse_csv(GetParam().text, "f");
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(to_text(table.error()), GetParam().errors);
}

const Malformed kMalformed[] = {
    {"", "f:1:1: is empty; expected a header row"},
    {"\n\r\n\n", "f:1:1: is empty; expected a header row"},
    {"\xEF\xBB\xBF", "f:1:1: is empty; expected a header row"},
    {"a,b\n1\n", "f:2:1: the row has 1 cell; the header has 2"},
    {"a,b\n1,2\n1,2,3\n\n4\n",
     "f:3:1: the row has 3 cells; the header has 2\n  hint: a cell that contains a comma must be in quotes\n"
     "f:5:1: the row has 1 cell; the header has 2"},
    {"a,b,a\n1,2,3", "f:1:5: the header \"a\" is there twice; it was first written at 1:1"},
    {"a, a \n", "f:1:3: the header \"a\" is there twice; it was first written at 1:1"},
    {"a,,c\n", "f:1:3: the header of this column is empty"},
    {"a,\n", "f:1:3: the header of this column is empty"},
    {"a\n\"x", "f:2:1: the quote is not closed"},
    {"a,b\n1,\"x\n\n", "f:2:3: the quote is not closed"},
    {"a\n\"x\"y\n",
     "f:2:4: \"y\" follows a closing quote; expected a comma or the end of the line\n"
     "  hint: a quote inside a quoted cell is doubled"},
    {"a\nx\"y\n",
     "f:2:2: a quote stands inside an unquoted cell\n"
     "  hint: put the whole cell in quotes and double the quotes inside: \"a \"\"b\"\"\""},
    {"a\r1\r",
     "f:1:2: a carriage return stands without a line feed\n"
     "  hint: save the file with LF or CRLF line ends"},
    {"a\n\"x\"\r1",
     "f:2:4: \"\\r\" follows a closing quote; expected a comma or the end of the line\n"
     "  hint: a quote inside a quoted cell is doubled"},
    {"a\n1\0\n"sv, "f:2:2: there is a NUL byte; expected text"},
    {"a\n\u00e9\xff\n", "f:2:2: the byte 0xff is not valid UTF-8\n  hint: save the file as UTF-8"},
};

INSTANTIATE_TEST_SUITE_P(Corpus, MalformedCsv, testing::ValuesIn(kMalformed));

TEST(ParseCsv, ManyRaggedRowsAreCounted) {
  std::string text = "a,b\n";
  for (int i = 0; i < 100; ++i) text += "1\n";
  const auto table = parse_csv(text, "f");
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().size(), 21U);
  EXPECT_EQ(table.error().back().message, "80 more rows have a wrong number of cells");
}

TEST(ParseCsv, LimitsAreErrors) {
  CsvLimits limits;
  limits.max_cells = 4;
  EXPECT_TRUE(parse_csv("a,b\n1,2\n", "f", limits).has_value());
  EXPECT_FALSE(parse_csv("a,b\n1,2\n3,4\n", "f", limits).has_value());
  limits.max_bytes = 3;
  EXPECT_FALSE(parse_csv("a,b\n", "f", limits).has_value());
  EXPECT_EQ(parse_csv_file("/no/such.csv").error()[0].code, ErrorCode::io);
}

TEST(CsvTable, NumbersAreReadOrLocated) {
  const CsvTable table = parsed("x,n\n 2.5 , -3 \nabc,2.5\n,\nnan,1e99\n16 GB,9e3\n");
  Errors errors;
  EXPECT_EQ(table.number(0, 0, errors), 2.5);
  EXPECT_EQ(table.whole_number(0, 1, errors), -3);
  EXPECT_EQ(table.whole_number(4, 1, errors), 9000);
  EXPECT_TRUE(errors.empty());
  for (std::size_t row = 1; row <= 4; ++row) EXPECT_FALSE(table.number(row, 0, errors).has_value());
  for (std::size_t row = 1; row <= 3; ++row) EXPECT_FALSE(table.whole_number(row, 1, errors).has_value());
  EXPECT_EQ(errors.size(), 7U);
  EXPECT_EQ(to_text(errors[0]), "f.csv:3:1: x: is \"abc\"; expected a number\n  hint: start with a number");
  EXPECT_EQ(to_text(errors[4]), "f.csv:3:5: n: is \"2.5\"; expected a whole number\n  hint: it is not whole");
}

TEST(CsvWriter, QuotesWhatNeedsIt) {
  CsvWriter writer({"a", "b"});
  writer.add_row({"1,2", "say \"x\""});
  writer.add_row({" x", "line\nend"});
  EXPECT_EQ(writer.text(), "a,b\n\"1,2\",\"say \"\"x\"\"\"\n\" x\",\"line\nend\"\n");
}

TEST(CsvWriter, AByteOrderMarkInACellIsKept) {
  const CsvWriter writer({"\xEF\xBB\xBF"});
  EXPECT_EQ(parsed(writer.text()).header(0).text, "\xEF\xBB\xBF");
}

RC_GTEST_PROP(CsvWriter, WhatIsWrittenReadsBackEqual, ()) {
  const auto columns = *rc::gen::inRange<std::size_t>(1, 5);
  const auto cell = rc::gen::container<std::string>(rc::gen::element('a', ',', '"', '\n', '\r', ' ', '0'));
  std::vector<std::string> header;
  for (std::size_t i = 0; i < columns; ++i) header.push_back(std::to_string(i) + "h");
  const auto rows = *rc::gen::container<std::vector<std::vector<std::string>>>(
      rc::gen::container<std::vector<std::string>>(columns, cell));
  CsvWriter writer(header);
  for (const auto& row : rows) writer.add_row(row);
  const auto table = parse_csv(writer.text(), "f");
  RC_ASSERT(table.has_value());
  RC_ASSERT(table->rows() == rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < columns; ++column)
      RC_ASSERT(table->text(row, column) == rows[row][column]);
  }
}

}  // namespace
}  // namespace foretrain
