#include "model/base/format.h"

#include <clocale>
#include <limits>
#include <locale>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/base/quantity.h"

namespace foretrain {
namespace {

TEST(FormatTime, PicksTheUnit) {
  EXPECT_EQ(format_time(Time{}), "0 ps");
  EXPECT_EQ(format_time(Time::from_ps(999)), "999 ps");
  EXPECT_EQ(format_time(Time::from_ms(3.42)), "3.42 ms");
  EXPECT_EQ(format_time(Time::from_us(50)), "50.0 us");
  EXPECT_EQ(format_time(Time::from_ps(999'960'000'000)), "1.00 s");
  EXPECT_EQ(format_time(Time::from_ps(9'996'000'000)), "10.0 ms");
  EXPECT_EQ(format_time(Time::from_ms(-3.42)), "-3.42 ms");
  EXPECT_EQ(format_time(Time::from_seconds(725)), "12 min 5 s");
  EXPECT_EQ(format_time(Time::from_seconds(12000)), "3 h 20 min");
  EXPECT_EQ(format_time(Time::from_seconds(86400 * 4.2)), "4.2 days");
  EXPECT_EQ(format_time(Time::max()), "forever");
  EXPECT_EQ(format_ms(Time::from_seconds(3.42)), "3420.00 ms");
}

TEST(FormatBytes, KeepsGbAndGibApart) {
  EXPECT_EQ(format_bytes(Bytes(512)), "512 B");
  EXPECT_EQ(format_bytes(Bytes(1010)), "1010 B");
  EXPECT_EQ(format_bytes(25 * kMiB), "25.0 MiB");
  EXPECT_EQ(format_bytes(Bytes(4'101'694'000)), "3.82 GiB");
  EXPECT_EQ(format_gib(Bytes(4'000'000'000)), "3.73 GiB");
  EXPECT_EQ(format_gb(Bytes(4'000'000'000)), "4.00 GB");
  EXPECT_EQ(format_mib(kMiB * 25), "25.0 MiB");
  EXPECT_EQ(format_bytes(Bytes(-1048576)), "-1.00 MiB");
}

TEST(Format, RatesCountsAndMoney) {
  EXPECT_EQ(format_bandwidth(Bandwidth::gb_per_s(16.3)), "16.3 GB/s");
  EXPECT_EQ(format_bandwidth(Bandwidth::gb_per_s(933)), "933 GB/s");
  EXPECT_EQ(format_bandwidth(Bandwidth::gb_per_s(4800)), "4.80 TB/s");
  EXPECT_EQ(format_flop_rate(FlopRate::tflops(165)), "165 TFLOPS");
  EXPECT_EQ(format_flops(Flops(1.54e15)), "1.54 PFLOP");
  EXPECT_EQ(format_frequency(1.44e9), "1.44 GHz");
  EXPECT_EQ(format_power(165), "165 W");
  EXPECT_EQ(format_energy(120), "120 J");
  EXPECT_EQ(format_energy(4.5e6), "1.25 kWh");
  EXPECT_EQ(format_count(812), "812");
  EXPECT_EQ(format_count(125.2e6), "125.2 M");
  EXPECT_EQ(format_count(405.9e9), "405.9 B");
  EXPECT_EQ(format_count(0.5), "0.500");
  EXPECT_EQ(format_whole(125226240), "125,226,240");
  EXPECT_EQ(format_whole(-1000), "-1,000");
  EXPECT_EQ(format_whole(999), "999");
  EXPECT_EQ(format_whole(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(format_percent(0.0234), "2.3 %");
  EXPECT_EQ(format_percent(-0.00001), "0.0 %");
  EXPECT_EQ(format_money(12.345), "12.35 USD");
  EXPECT_EQ(format_money(1234567.2), "1,234,567 USD");
}

TEST(Format, NumbersThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(format_count(nan), "?");
  EXPECT_NE(format_count(infinity).find("inf"), std::string::npos);
  EXPECT_NE(format_money(infinity).find("inf"), std::string::npos);
  EXPECT_FALSE(format_percent(nan).empty());
}

// What is written reads back within half a unit of its last digit.
RC_GTEST_PROP(FormatTime, ReadsBackWithinItsDigits, ()) {
  const Time time = Time::from_ps(*rc::gen::inRange<std::int64_t>(1, 599'000'000'000'000));
  const Expected<Time> back = parse_time(format_time(time));
  RC_ASSERT(back.has_value());
  RC_ASSERT(std::abs(*back / time - 1) <= 0.00501);
}

RC_GTEST_PROP(FormatBytes, ReadsBackWithinItsDigits, ()) {
  const Bytes bytes(*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 49));
  const Expected<Bytes> back = parse_bytes(format_bytes(bytes));
  RC_ASSERT(back.has_value());
  RC_ASSERT(std::abs(static_cast<double>(back->count()) / static_cast<double>(bytes.count()) - 1) <= 0.00501);
}

TEST(Format, IgnoresTheLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) GTEST_SKIP() << "skipped: no de_DE locale";
  EXPECT_EQ(format_time(Time::from_ms(3.42)), "3.42 ms");
  std::setlocale(LC_ALL, before.c_str());
}

}  // namespace
}  // namespace foretrain
