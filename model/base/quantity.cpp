#include "model/base/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "model/base/text.h"

namespace foretrain {
namespace {

struct Unit {
  std::string_view name;
  double size;  // in base units: bytes, bytes/s, ps for time, FLOPS, W, J, Hz, USD ...
};

// A spelling that is refused because two readings of it differ, and what to write.
struct Trap {
  std::string_view name;
  std::string_view hint;
};

constexpr Unit kBytesUnits[] = {{"B", 1},
                                {"kB", 1e3},
                                {"MB", 1e6},
                                {"GB", 1e9},
                                {"TB", 1e12},
                                {"KiB", 1024.0},
                                {"MiB", 1048576.0},
                                {"GiB", 1073741824.0},
                                {"TiB", 1099511627776.0},
                                {"PB", 1e15},
                                {"PiB", 1125899906842624.0}};
constexpr Unit kBandwidthUnits[] = {{"B/s", 1},
                                    {"kB/s", 1e3},
                                    {"MB/s", 1e6},
                                    {"GB/s", 1e9},
                                    {"TB/s", 1e12},
                                    {"PB/s", 1e15},
                                    {"KiB/s", 1024.0},
                                    {"MiB/s", 1048576.0},
                                    {"GiB/s", 1073741824.0},
                                    {"TiB/s", 1099511627776.0},
                                    {"kbit/s", 125},
                                    {"Mbit/s", 125e3},
                                    {"Gbit/s", 125e6},
                                    {"Tbit/s", 125e9}};
constexpr Unit kTimeUnits[] = {{"ps", 1},   {"ns", 1e3}, {"us", 1e6},    {"\u00b5s", 1e6}, {"\u03bcs", 1e6},
                               {"ms", 1e9}, {"s", 1e12}, {"min", 60e12}, {"h", 3600e12},   {"d", 86400e12}};
constexpr Unit kFlopRateUnits[] = {{"FLOPS", 1},     {"MFLOPS", 1e6},   {"GFLOPS", 1e9},   {"TFLOPS", 1e12},
                                   {"PFLOPS", 1e15}, {"EFLOPS", 1e18},  {"FLOP/s", 1},     {"MFLOP/s", 1e6},
                                   {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18}};
constexpr Unit kPowerUnits[] = {{"W", 1}, {"mW", 1e-3}, {"kW", 1e3}, {"MW", 1e6}};
constexpr Unit kEnergyUnits[] = {{"J", 1},     {"kJ", 1e3},    {"MJ", 1e6},
                                 {"Wh", 3600}, {"kWh", 3.6e6}, {"MWh", 3.6e9}};
constexpr Unit kFrequencyUnits[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
constexpr Unit kMoneyUnits[] = {{"USD", 1}};
constexpr Unit kPricePerHourUnits[] = {{"USD/h", 1}};
constexpr Unit kPricePerKwhUnits[] = {{"USD/kWh", 1}};

constexpr Trap kBytesTraps[] = {{"KB", "write kB (1000 bytes) or KiB (1024 bytes)"},
                                {"K", "write kB (1000 bytes) or KiB (1024 bytes)"},
                                {"k", "write kB (1000 bytes) or KiB (1024 bytes)"},
                                {"M", "write MB (10^6 bytes) or MiB (2^20 bytes)"},
                                {"G", "write GB (10^9 bytes) or GiB (2^30 bytes)"},
                                {"T", "write TB (10^12 bytes) or TiB (2^40 bytes)"},
                                {"b", "bits or bytes? Write B for bytes"},
                                {"Mb", "bits or bytes? Write MB (10^6 bytes) or MiB (2^20 bytes)"},
                                {"Gb", "bits or bytes? Write GB (10^9 bytes) or GiB (2^30 bytes)"}};
constexpr Trap kBandwidthTraps[] = {
    {"KB/s", "write kB/s (1000 bytes) or KiB/s (1024 bytes)"},
    {"b/s", "bits or bytes? Write B/s for bytes or kbit/s for 1000 bits"},
    {"Mb/s", "bits or bytes? Write Mbit/s for bits or MB/s for bytes (1 MB/s = 8 Mbit/s)"},
    {"Gb/s", "bits or bytes? Write Gbit/s for bits or GB/s for bytes (1 GB/s = 8 Gbit/s)"},
    {"Tb/s", "bits or bytes? Write Tbit/s for bits or TB/s for bytes (1 TB/s = 8 Tbit/s)"},
    {"Mbps", "write Mbit/s for bits or MB/s for bytes (1 MB/s = 8 Mbit/s)"},
    {"Gbps", "write Gbit/s for bits or GB/s for bytes (1 GB/s = 8 Gbit/s)"},
    {"Tbps", "write Tbit/s for bits or TB/s for bytes (1 TB/s = 8 Tbit/s)"},
    {"MBps", "did you mean \"MB/s\"?"},
    {"GBps", "did you mean \"GB/s\"?"},
    {"TBps", "did you mean \"TB/s\"?"},
    {"MB", "a bandwidth is per second: write MB/s"},
    {"GB", "a bandwidth is per second: write GB/s"},
    {"GT/s", "transfers are not bytes: PCIe Gen4 x16 (16 GT/s) carries about 31.5 GB/s each way"}};
constexpr Trap kTimeTraps[] = {{"m", "minutes or milliseconds? Write min or ms"},
                               {"M", "minutes or milliseconds? Write min or ms"},
                               {"sec", "did you mean \"s\"?"},
                               {"secs", "did you mean \"s\"?"},
                               {"seconds", "did you mean \"s\"?"},
                               {"minutes", "did you mean \"min\"?"},
                               {"hours", "did you mean \"h\"?"},
                               {"hr", "did you mean \"h\"?"},
                               {"days", "did you mean \"d\"?"}};
constexpr Trap kMoneyTraps[] = {{"$", "did you mean \"USD\"?"},
                                {"USD/h", "an amount, not a price per hour: write USD"}};
constexpr Trap kPricePerHourTraps[] = {{"USD", "a price is per hour: write USD/h"},
                                       {"$/h", "did you mean \"USD/h\"?"},
                                       {"USD/hr", "did you mean \"USD/h\"?"},
                                       {"USD/hour", "did you mean \"USD/h\"?"}};

struct DimensionInfo {
  std::string_view description;
  std::span<const Unit> units;
  std::span<const Trap> traps;
};

DimensionInfo info_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return {"a number of bytes with its unit, such as \"25 MiB\"", kBytesUnits, kBytesTraps};
    case Dimension::bandwidth:
      return {"a bandwidth with its unit, such as \"16 GB/s\" or \"200 Gbit/s\"", kBandwidthUnits,
              kBandwidthTraps};
    case Dimension::time:
      return {"a time with its unit, such as \"50 us\" or \"3 ms\"", kTimeUnits, kTimeTraps};
    case Dimension::flop_rate:
      return {
          "a rate of floating-point operations with its unit, such as \"165 TFLOPS\"", kFlopRateUnits, {}};
    case Dimension::power:
      return {"a power with its unit, such as \"165 W\"", kPowerUnits, {}};
    case Dimension::energy:
      return {"an energy with its unit, such as \"2.5 kWh\"", kEnergyUnits, {}};
    case Dimension::frequency:
      return {"a frequency with its unit, such as \"1440 MHz\"", kFrequencyUnits, {}};
    case Dimension::money:
      return {"an amount of money with its unit, such as \"1.50 USD\"", kMoneyUnits, kMoneyTraps};
    case Dimension::price_per_hour:
      return {"a price with its unit, such as \"1.50 USD/h\"", kPricePerHourUnits, kPricePerHourTraps};
    case Dimension::price_per_kwh:
      return {"a price with its unit, such as \"0.12 USD/kWh\"", kPricePerKwhUnits, {}};
  }
  return {"a quantity", {}, {}};
}

tl::unexpected<Errors> refuse(std::string_view text, std::string_view expected, std::string hint = {}) {
  return fail(ErrorCode::input, fmt::format("is {}; expected {}", in_quotes(text), expected),
              std::move(hint));
}

// A decimal number at the start of a text. `whole` is set when it was written as digits only and fits.
struct Number {
  double value = 0;
  std::optional<std::int64_t> whole;
  std::string_view rest;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Why the text does not start with a number; empty when it may.
std::string number_hint(std::string_view text) {
  if (text.empty()) return "the text is empty";
  const std::string word = to_lower(text.substr(0, 9));
  if (word.starts_with("nan") || word.starts_with("inf") || word.starts_with("-inf") ||
      word.starts_with("-nan")) {
    return "infinities and NaN are not values";
  }
  if (text.front() == '+') return "leave the \"+\" out";
  if (text.front() == '$') return "write the amount first, then USD";
  return "start with a number";
}

// The error is a hint.
tl::expected<Number, std::string> read_number(std::string_view text) {
  const std::size_t first = !text.empty() && text.front() == '-' ? 1 : 0;
  const bool digit_first = text.size() > first && is_digit(text[first]);
  if (!digit_first) {
    if (text.size() > first + 1 && text[first] == '.' && is_digit(text[first + 1])) {
      return tl::unexpected<std::string>("write a digit before the decimal point");
    }
    return tl::unexpected<std::string>(number_hint(text));
  }
  Number number;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const std::from_chars_result result = std::from_chars(begin, end, number.value, std::chars_format::general);
  const std::string_view written = text.substr(0, static_cast<std::size_t>(result.ptr - begin));
  number.rest = text.substr(written.size());
  if (result.ec == std::errc::result_out_of_range) {
    return tl::unexpected<std::string>("the number is too large, or too near to zero, to be represented");
  }
  if (result.ec != std::errc{}) return tl::unexpected<std::string>("start with a number");
  if (number.rest.starts_with(',') || number.rest.starts_with('_') || number.rest.starts_with('\'')) {
    return tl::unexpected<std::string>("write the number without separators, with \".\" as the decimal mark");
  }
  if (number.rest.starts_with('.')) return tl::unexpected<std::string>("the number has two decimal points");
  if (written == "0" && (number.rest.starts_with('x') || number.rest.starts_with('X'))) {
    return tl::unexpected<std::string>("write the number in decimal");
  }
  std::int64_t whole = 0;
  const std::from_chars_result exact = std::from_chars(begin, begin + written.size(), whole);
  if (exact.ec == std::errc{} && exact.ptr == begin + written.size()) number.whole = whole;
  return number;
}

// What to write for a unit that is not in the table.
std::string unit_hint(std::string_view unit, const DimensionInfo& info) {
  std::vector<std::string_view> names;
  for (const Unit& known : info.units) names.push_back(known.name);
  for (const Trap& trap : info.traps) {
    if (trap.name == unit) return std::string(trap.hint);
  }
  std::vector<std::string_view> same_but_for_case;
  for (const std::string_view name : names) {
    if (equals_ignoring_case(name, unit)) same_but_for_case.push_back(name);
  }
  if (!same_but_for_case.empty()) {
    return fmt::format("did you mean \"{}\"? Upper and lower case matter in units",
                       fmt::join(same_but_for_case, "\" or \""));
  }
  return did_you_mean(unit, names, "units");
}

struct Quantity {
  Number number;
  double unit_size = 1;
};

Expected<Quantity> read_quantity(std::string_view text, Dimension dimension, Sign sign) {
  const DimensionInfo info = info_of(dimension);
  const std::string_view trimmed = trim(text);
  const auto number = read_number(trimmed);
  if (!number) return refuse(text, info.description, number.error());
  const std::string_view unit = trim(number->rest);
  if (unit.empty()) {
    std::vector<std::string_view> names;
    for (const Unit& known : info.units) names.push_back(known.name);
    return refuse(text, info.description,
                  fmt::format("the unit is missing; units: {}", fmt::join(names, ", ")));
  }
  for (const Unit& known : info.units) {
    if (known.name != unit) continue;
    if (sign == Sign::not_negative && std::signbit(number->value) && number->value != 0) {
      return refuse(text, info.description, "it cannot be negative");
    }
    return Quantity{*number, known.size};
  }
  return refuse(text, info.description,
                fmt::format("unknown unit {}; {}", in_quotes(unit), unit_hint(unit, info)));
}

// number x unit_size rounded to a whole number of base units; exact when both are whole. Nothing when beyond
// the range.
std::optional<std::int64_t> whole_units(const Quantity& quantity) {
  std::int64_t product = 0;
  if (quantity.number.whole &&
      !__builtin_mul_overflow(*quantity.number.whole, static_cast<std::int64_t>(quantity.unit_size),
                              &product)) {
    return product;
  }
  const double rounded = std::round(quantity.number.value * quantity.unit_size);
  if (!(std::fabs(rounded) < 9.2e18)) return std::nullopt;
  return static_cast<std::int64_t>(rounded);
}

}  // namespace

std::string describe(Dimension dimension) { return std::string(info_of(dimension).description); }

Expected<Bytes> parse_bytes(std::string_view text, Sign sign) {
  const Expected<Quantity> quantity = read_quantity(text, Dimension::bytes, sign);
  if (!quantity) return fail(quantity.error());
  if (quantity->unit_size == 1 && quantity->number.value != std::trunc(quantity->number.value)) {
    return refuse(text, describe(Dimension::bytes), "a byte cannot be divided");
  }
  const std::optional<std::int64_t> count = whole_units(*quantity);
  if (!count) return refuse(text, describe(Dimension::bytes), "it is beyond the range of 9.2e18 bytes");
  if (*count == 0 && quantity->number.value != 0) {
    return refuse(text, describe(Dimension::bytes), "it is less than one byte");
  }
  return Bytes(*count);
}

Expected<Bandwidth> parse_bandwidth(std::string_view text) {
  const Expected<double> rate = parse_quantity(text, Dimension::bandwidth);
  if (!rate) return fail(rate.error());
  return Bandwidth::bytes_per_s(*rate);
}

Expected<Time> parse_time(std::string_view text, Sign sign) {
  const Expected<Quantity> quantity = read_quantity(text, Dimension::time, sign);
  if (!quantity) return fail(quantity.error());
  const std::optional<std::int64_t> ps = whole_units(*quantity);
  if (!ps) return refuse(text, describe(Dimension::time), "it is beyond the range of 106 days");
  if (*ps == 0 && quantity->number.value != 0) {
    return refuse(text, describe(Dimension::time), "it is less than one picosecond");
  }
  return Time::from_ps(*ps);
}

Expected<FlopRate> parse_flop_rate(std::string_view text) {
  const Expected<double> rate = parse_quantity(text, Dimension::flop_rate);
  if (!rate) return fail(rate.error());
  return FlopRate::per_s(*rate);
}

Expected<double> parse_quantity(std::string_view text, Dimension dimension, Sign sign) {
  const Expected<Quantity> quantity = read_quantity(text, dimension, sign);
  if (!quantity) return fail(quantity.error());
  const double scale = dimension == Dimension::time ? quantity->unit_size * 1e-12 : quantity->unit_size;
  const double value = quantity->number.value * scale;
  if (!std::isfinite(value)) return refuse(text, describe(dimension), "it is too large to be represented");
  if (value == 0) return 0.0;  // "-0" too
  return value;
}

Expected<double> parse_number(std::string_view text) {
  const auto number = read_number(trim(text));
  if (!number) return refuse(text, "a number", number.error());
  if (!trim(number->rest).empty()) {
    return refuse(text, "a number",
                  fmt::format("nothing may follow the number, {} does", in_quotes(trim(number->rest))));
  }
  return number->value;
}

Expected<std::int64_t> parse_count(std::string_view text) {
  constexpr std::string_view kExpected = "a whole number from 0, such as 2048 or 300e9";
  const auto number = read_number(trim(text));
  if (!number) return refuse(text, kExpected, number.error());
  if (!trim(number->rest).empty()) {
    return refuse(text, kExpected,
                  fmt::format("nothing may follow the number, {} does", in_quotes(trim(number->rest))));
  }
  if (number->value < 0) return refuse(text, kExpected, "it cannot be negative");
  if (number->whole) return *number->whole;
  if (number->value != std::trunc(number->value)) return refuse(text, kExpected, "it is not whole");
  if (!(number->value < 9.2e18)) return refuse(text, kExpected, "it is beyond the range of 9.2e18");
  return static_cast<std::int64_t>(number->value);
}

}  // namespace foretrain
