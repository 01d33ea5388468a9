#include "model/base/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace foretrain {
namespace {

struct Scale {
  double size;
  std::string_view unit;
};

// Decimals that show `digits` significant digits of a value in 1..1000.
int decimals_for(double magnitude, int digits) {
  int whole = 1;
  while (whole < 4 && magnitude >= std::pow(10.0, whole)) ++whole;
  return std::max(0, digits - whole);
}

double rounded_to(double magnitude, int decimals) {
  const double factor = std::pow(10.0, decimals);
  return std::round(magnitude * factor) / factor;
}

// `value` in the largest unit of `scales` (ascending) in which it is at least 1 after rounding. A unit whose
// size is 1 holds whole things when `whole_base` (no decimals).
std::string scaled(double value, std::span<const Scale> scales, int digits, bool whole_base) {
  if (std::isnan(value)) return "?";
  const double magnitude = std::fabs(value);
  std::size_t unit = 0;
  while (unit + 1 < scales.size() && magnitude >= scales[unit + 1].size) ++unit;
  double shown = magnitude / scales[unit].size;
  int decimals = decimals_for(shown, digits);
  if (whole_base && unit == 0) decimals = 0;
  if (std::isfinite(shown)) shown = rounded_to(shown, decimals);
  // 999.96 rounds to 1000: that is 1.00 of the next unit.
  if (unit + 1 < scales.size() && shown * scales[unit].size >= scales[unit + 1].size) {
    ++unit;
    shown = magnitude / scales[unit].size;
    decimals = decimals_for(shown, digits);
  } else if (!(whole_base && unit == 0)) {
    decimals = decimals_for(shown, digits);  // 9.996 became 10.0
  }
  if (magnitude == 0) decimals = 0;
  const std::string_view gap = scales[unit].unit.empty() ? "" : " ";
  return fmt::format("{}{:.{}f}{}{}", value < 0 ? "-" : "", shown, decimals, gap, scales[unit].unit);
}

constexpr std::array<Scale, 5> kTimeScales{{{1, "ps"}, {1e3, "ns"}, {1e6, "us"}, {1e9, "ms"}, {1e12, "s"}}};
constexpr std::array<Scale, 6> kBytesScales{{{1, "B"},
                                             {1024.0, "KiB"},
                                             {1048576.0, "MiB"},
                                             {1073741824.0, "GiB"},
                                             {1099511627776.0, "TiB"},
                                             {1125899906842624.0, "PiB"}}};
constexpr std::array<Scale, 6> kBandwidthScales{
    {{1, "B/s"}, {1e3, "kB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}, {1e15, "PB/s"}}};
constexpr std::array<Scale, 7> kFlopRateScales{{{1, "FLOPS"},
                                                {1e3, "kFLOPS"},
                                                {1e6, "MFLOPS"},
                                                {1e9, "GFLOPS"},
                                                {1e12, "TFLOPS"},
                                                {1e15, "PFLOPS"},
                                                {1e18, "EFLOPS"}}};
constexpr std::array<Scale, 8> kFlopsScales{{{1, "FLOP"},
                                             {1e3, "kFLOP"},
                                             {1e6, "MFLOP"},
                                             {1e9, "GFLOP"},
                                             {1e12, "TFLOP"},
                                             {1e15, "PFLOP"},
                                             {1e18, "EFLOP"},
                                             {1e21, "ZFLOP"}}};
constexpr std::array<Scale, 4> kFrequencyScales{{{1, "Hz"}, {1e3, "kHz"}, {1e6, "MHz"}, {1e9, "GHz"}}};
constexpr std::array<Scale, 5> kPowerScales{{{1e-3, "mW"}, {1, "W"}, {1e3, "kW"}, {1e6, "MW"}, {1e9, "GW"}}};
constexpr std::array<Scale, 1> kJouleScales{{{1, "J"}}};
constexpr std::array<Scale, 4> kWattHourScales{{{1, "Wh"}, {1e3, "kWh"}, {1e6, "MWh"}, {1e9, "GWh"}}};
constexpr std::array<Scale, 5> kCountScales{{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "B"}, {1e12, "T"}}};

constexpr double kSecondsPerDay = 86400;

std::string format_long_time(double seconds) {
  const std::string sign = seconds < 0 ? "-" : "";
  const double magnitude = std::fabs(seconds);
  if (magnitude >= 2 * kSecondsPerDay) return fmt::format("{}{:.1f} days", sign, magnitude / kSecondsPerDay);
  const long long whole = std::llround(magnitude);
  if (whole >= 3600) {
    const long long minutes = std::llround(magnitude / 60);
    return fmt::format("{}{} h {} min", sign, minutes / 60, minutes % 60);
  }
  return fmt::format("{}{} min {} s", sign, whole / 60, whole % 60);
}

}  // namespace

std::string format_fixed(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.front() == '-' && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string format_time(Time time) {
  if (time == Time::max()) return "forever";
  if (std::fabs(time.seconds()) >= 600) return format_long_time(time.seconds());
  return scaled(static_cast<double>(time.ps()), kTimeScales, 3, true);
}
std::string format_ms(Time time, int decimals) {
  if (time == Time::max()) return "forever";
  return format_fixed(time.ms(), decimals) + " ms";
}

std::string format_bytes(Bytes bytes) {
  return scaled(static_cast<double>(bytes.count()), kBytesScales, 3, true);
}
std::string format_gib(Bytes bytes, int decimals) { return format_fixed(bytes.gib(), decimals) + " GiB"; }
std::string format_mib(Bytes bytes, int decimals) { return format_fixed(bytes.mib(), decimals) + " MiB"; }
std::string format_gb(Bytes bytes, int decimals) { return format_fixed(bytes.gb(), decimals) + " GB"; }

std::string format_bandwidth(Bandwidth bandwidth) {
  return scaled(bandwidth.bytes_per_s(), kBandwidthScales, 3, false);
}
std::string format_flop_rate(FlopRate rate) { return scaled(rate.per_s(), kFlopRateScales, 3, false); }
std::string format_flops(Flops flops) { return scaled(flops.count(), kFlopsScales, 3, false); }
std::string format_frequency(double hertz) { return scaled(hertz, kFrequencyScales, 3, false); }
std::string format_power(double watts) { return scaled(watts, kPowerScales, 3, false); }

std::string format_energy(double joules) {
  if (std::fabs(joules) < 3600) return scaled(joules, kJouleScales, 3, false);
  return scaled(joules / 3600, kWattHourScales, 3, false);
}

std::string format_count(double count) {
  if (std::fabs(count) < 1000 && count == std::trunc(count)) return format_fixed(count, 0);
  return scaled(count, kCountScales, 4, false);
}

std::string format_whole(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string format_percent(double fraction, int decimals) {
  return format_fixed(fraction * 100, decimals) + " %";
}

std::string format_money(double usd) {
  if (!(std::fabs(usd) < 9e15)) return fmt::format("{:.3g} USD", usd);
  if (std::fabs(usd) >= 10000) return format_whole(std::llround(usd)) + " USD";
  return format_fixed(usd, 2) + " USD";
}

}  // namespace foretrain
