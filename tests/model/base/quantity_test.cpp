#include "model/base/quantity.h"

#include <cmath>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace foretrain {
namespace {

using testing::HasSubstr;

TEST(ParseBytes, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("512 B")->count(), 512);
  EXPECT_EQ(parse_bytes("1 kB")->count(), 1000);
  EXPECT_EQ(parse_bytes("1 KiB")->count(), 1024);
  EXPECT_EQ(parse_bytes("1 MB")->count(), 1'000'000);
  EXPECT_EQ(parse_bytes("25 MiB")->count(), 26'214'400);
  EXPECT_EQ(parse_bytes("25MiB")->count(), 26'214'400);
  EXPECT_EQ(parse_bytes("1.5 GiB")->count(), 1'610'612'736);
  EXPECT_EQ(parse_bytes("24 GB")->count(), 24'000'000'000);
  EXPECT_EQ(parse_bytes("2 TB")->count(), 2'000'000'000'000);
  EXPECT_EQ(parse_bytes("2 TiB")->count(), 2'199'023'255'552);
  EXPECT_EQ(parse_bytes("2 PiB")->count(), std::int64_t{1} << 51);
  EXPECT_EQ(parse_bytes("1e3 B")->count(), 1000);
  EXPECT_EQ(parse_bytes(" 0 B ")->count(), 0);
  EXPECT_EQ(parse_bytes("-1 KiB", Sign::any)->count(), -1024);
}

TEST(ParseBytes, IsExactBeyondDoubles) {
  EXPECT_EQ(parse_bytes("9007199254740993 B")->count(), 9'007'199'254'740'993);
  EXPECT_EQ(parse_bytes("9223372036854775807 B")->count(), 9'223'372'036'854'775'807);
}

TEST(ParseBandwidth, InBytesAndBits) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("16 GB/s")->bytes_per_s(), 16e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("200 Gbit/s")->bytes_per_s(), 25e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1 MiB/s")->bytes_per_s(), 1048576);
  EXPECT_DOUBLE_EQ(parse_bandwidth("4.8 TB/s")->bytes_per_s(), 4.8e12);
}

TEST(ParseTime, KnowsItsUnits) {
  EXPECT_EQ(parse_time("1 ps")->ps(), 1);
  EXPECT_EQ(parse_time("7 ns")->ps(), 7'000);
  EXPECT_EQ(parse_time("50 us")->ps(), 50'000'000);
  EXPECT_EQ(parse_time("50 \u00b5s")->ps(), 50'000'000);
  EXPECT_EQ(parse_time("0.1 ms")->ps(), 100'000'000);
  EXPECT_EQ(parse_time("10 s")->ps(), 10'000'000'000'000);
  EXPECT_EQ(parse_time("5 min")->ps(), 300'000'000'000'000);
  EXPECT_EQ(parse_time("3 h")->ps(), 10'800'000'000'000'000);
  EXPECT_EQ(parse_time("1 d")->ps(), 86'400'000'000'000'000);
}

TEST(ParseQuantity, OtherDimensions) {
  EXPECT_DOUBLE_EQ(parse_flop_rate("10.3 TFLOPS")->per_s(), 10.3e12);
  EXPECT_DOUBLE_EQ(parse_flop_rate("1 PFLOPS")->tflops(), 1000);
  EXPECT_DOUBLE_EQ(parse_flop_rate("312 TFLOP/s")->tflops(), 312);
  EXPECT_DOUBLE_EQ(*parse_quantity("165 W", Dimension::power), 165);
  EXPECT_DOUBLE_EQ(*parse_quantity("1.2 kW", Dimension::power), 1200);
  EXPECT_DOUBLE_EQ(*parse_quantity("1440 MHz", Dimension::frequency), 1.44e9);
  EXPECT_DOUBLE_EQ(*parse_quantity("1.44 GHz", Dimension::frequency), 1.44e9);
  EXPECT_DOUBLE_EQ(*parse_quantity("1.50 USD", Dimension::money), 1.5);
  EXPECT_DOUBLE_EQ(*parse_quantity("1.5 USD/h", Dimension::price_per_hour), 1.5);
  EXPECT_DOUBLE_EQ(*parse_quantity("0.12 USD/kWh", Dimension::price_per_kwh), 0.12);
  EXPECT_DOUBLE_EQ(*parse_quantity("2 kWh", Dimension::energy), 7.2e6);
  EXPECT_DOUBLE_EQ(*parse_quantity("3 ms", Dimension::time), 3e-3);
  EXPECT_EQ(*parse_count("300e9"), 300'000'000'000);
  EXPECT_EQ(*parse_count("2048"), 2048);
  EXPECT_DOUBLE_EQ(*parse_number("-2.5"), -2.5);
}

struct Refused {
  Dimension dimension;
  std::string_view text;
  std::string_view hint;
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.text; }

class ParseQuantityRefuses : public testing::TestWithParam<Refused> {};

TEST_P(ParseQuantityRefuses, WithTheReason) {
  const Refused& refused = GetParam();
  Errors errors;
  if (refused.dimension == Dimension::bytes) {
    const auto result = parse_bytes(refused.text);
    ASSERT_FALSE(result.has_value());
    errors = result.error();
  } else if (refused.dimension == Dimension::time) {
    const auto result = parse_time(refused.text);
    ASSERT_FALSE(result.has_value());
    errors = result.error();
  } else {
    const auto result = parse_quantity(refused.text, refused.dimension);
    ASSERT_FALSE(result.has_value());
    errors = result.error();
  }
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].code, ErrorCode::input);
  EXPECT_THAT(errors[0].message, HasSubstr("expected a"));
  EXPECT_THAT(errors[0].message, HasSubstr("such as"));
  EXPECT_THAT(errors[0].hint, HasSubstr(std::string(refused.hint)));
}

constexpr Refused kRefused[] = {
    {Dimension::bytes, "", "empty"},
    {Dimension::bytes, "MiB", "start with a number"},
    {Dimension::bytes, "25", "the unit is missing; units: B, kB"},
    {Dimension::bytes, "25 mib", "did you mean \"MiB\"?"},
    {Dimension::bytes, "25 mb", "did you mean \"MB\"?"},
    {Dimension::bytes, "25 Mib", "did you mean \"MiB\"?"},
    {Dimension::bytes, "25 Mb", "bits or bytes?"},
    {Dimension::bytes, "25 KB", "kB (1000 bytes) or KiB (1024 bytes)"},
    {Dimension::bytes, "25 G", "GB (10^9 bytes) or GiB (2^30 bytes)"},
    {Dimension::bytes, "25 MiBB", "did you mean \"MiB\"?"},
    {Dimension::bytes, "25 parsecs", "units: B, kB"},
    {Dimension::bytes, "-1 B", "cannot be negative"},
    {Dimension::bytes, "0.5 B", "cannot be divided"},
    {Dimension::bytes, "1e-9 KiB", "less than one byte"},
    {Dimension::bytes, "1e30 B", "beyond the range"},
    {Dimension::bytes, "9223372036854775808 B", "beyond the range"},
    {Dimension::bytes, "9000000000 TiB", "beyond the range"},
    {Dimension::bytes, "1e999 B", "too large"},
    {Dimension::bytes, "1e-999 B", "too near to zero"},
    {Dimension::bytes, "nan B", "NaN"},
    {Dimension::bytes, "NaN", "NaN"},
    {Dimension::bytes, "inf B", "infinities"},
    {Dimension::bytes, "-Infinity B", "infinities"},
    {Dimension::bytes, "1,000 MB", "separators"},
    {Dimension::bytes, "1_000 MB", "separators"},
    {Dimension::bytes, "1.2.3 MB", "two decimal points"},
    {Dimension::bytes, "0x10 B", "decimal"},
    {Dimension::bytes, "+1 B", "leave the \"+\" out"},
    {Dimension::bytes, ".5 GiB", "a digit before the decimal point"},
    {Dimension::bytes, "- 5 B", "start with a number"},
    {Dimension::bytes, "5 GB/s", "known units: B, kB"},
    {Dimension::bandwidth, "16 Gb/s", "1 GB/s = 8 Gbit/s"},
    {Dimension::bandwidth, "16 Gbps", "Gbit/s for bits or GB/s for bytes"},
    {Dimension::bandwidth, "16 GBps", "GB/s"},
    {Dimension::bandwidth, "16 gb/s", "did you mean \"GB/s\"?"},
    {Dimension::bandwidth, "16 GB", "a bandwidth is per second"},
    {Dimension::bandwidth, "16 GT/s", "transfers are not bytes"},
    {Dimension::bandwidth, "1e308 TB/s", ""},
    {Dimension::bandwidth, "-16 GB/s", "cannot be negative"},
    {Dimension::time, "5 m", "minutes or milliseconds?"},
    {Dimension::time, "5 MS", "did you mean \"ms\"?"},
    {Dimension::time, "5 sec", "did you mean \"s\"?"},
    {Dimension::time, "200 d", "beyond the range of 106 days"},
    {Dimension::time, "0.1 ps", "less than one picosecond"},
    {Dimension::flop_rate, "165 Tflops", "did you mean \"TFLOPS\"?"},
    {Dimension::flop_rate, "165 TOPS", "TFLOPS"},
    {Dimension::power, "165 w", "did you mean \"W\"?"},
    {Dimension::power, "165 MWh", ""},
    {Dimension::frequency, "1440 mhz", "did you mean \"MHz\"?"},
    {Dimension::money, "$1.50", "write the amount first, then USD"},
    {Dimension::money, "1.50 EUR", "USD"},
    {Dimension::price_per_hour, "1.50 USD", "per hour"},
    {Dimension::price_per_hour, "1.50 USD/hr", "USD/h"},
    {Dimension::price_per_kwh, "0.1 USD/KWh", "did you mean \"USD/kWh\"?"},
};

INSTANTIATE_TEST_SUITE_P(Corpus, ParseQuantityRefuses, testing::ValuesIn(kRefused));

TEST(ParseCount, RefusesWhatIsNotACount) {
  for (const std::string_view text : {"", "-1", "2.5", "1e99", "300 B", "300 G", "nan", "1 000", "0x10"}) {
    EXPECT_FALSE(parse_count(text).has_value()) << text;
  }
  for (const std::string_view text : {"", "1 2", "inf", "1e999", "abc", "1,5"}) {
    EXPECT_FALSE(parse_number(text).has_value()) << text;
  }
}

RC_GTEST_PROP(ParseBytes, WholeBytesReadBackExactly, ()) {
  const std::int64_t count = *rc::gen::nonNegative<std::int64_t>();
  RC_ASSERT(parse_bytes(std::to_string(count) + " B")->count() == count);
  RC_ASSERT(parse_count(std::to_string(count)).value() == count);
}

RC_GTEST_PROP(ParseTime, WholeMultiplesReadBackExactly, ()) {
  const std::int64_t us = *rc::gen::inRange<std::int64_t>(0, 9'000'000'000'000);
  RC_ASSERT(parse_time(std::to_string(us) + " us")->ps() == us * 1'000'000);
}

RC_GTEST_PROP(ParseQuantity, NeverAnswersWhatIsNotFinite, (const std::string& text)) {
  for (const Dimension dimension :
       {Dimension::bytes, Dimension::bandwidth, Dimension::time, Dimension::money}) {
    const auto value = parse_quantity(text, dimension);
    RC_ASSERT(!value.has_value() || (std::isfinite(*value) && *value >= 0));
  }
}

}  // namespace
}  // namespace foretrain
