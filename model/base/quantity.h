// Quantities that people write as text with a unit: "25 MiB", "16 GB/s", "50 us", "165 TFLOPS", "1.50 USD/h".
//
// A bare number is refused (the unit is missing), as are NaN, infinities, values beyond the range, thousands
// separators, and units in another case than the one listed (MB is 10^6 bytes, Mb and mb are nobody knows
// what). The error says what came, what was expected and, where it can be guessed, what was meant; it has no
// location (the caller knows it: see add_located() in model/json/reader.h). Independent of the locale; safe
// from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/error.h"
#include "model/base/units.h"

namespace foretrain {

// What is measured, and the base unit that parse_quantity() answers in.
enum class Dimension : std::uint8_t {
  bytes,           // B
  bandwidth,       // B/s
  time,            // s
  flop_rate,       // FLOPS
  power,           // W
  energy,          // J
  frequency,       // Hz
  money,           // USD
  price_per_hour,  // USD/h
  price_per_kwh,   // USD/kWh
};

enum class Sign : std::uint8_t { not_negative, any };

Expected<Bytes> parse_bytes(std::string_view text, Sign sign = Sign::not_negative);
Expected<Bandwidth> parse_bandwidth(std::string_view text);
Expected<Time> parse_time(std::string_view text, Sign sign = Sign::not_negative);
Expected<FlopRate> parse_flop_rate(std::string_view text);

// Any dimension, in its base unit. Bytes and times come back exact only below 2^53: prefer the typed
// functions.
Expected<double> parse_quantity(std::string_view text, Dimension dimension, Sign sign = Sign::not_negative);

// A plain decimal number without unit: "300e9", "-2.5". Finite; nothing may follow it.
Expected<double> parse_number(std::string_view text);
// A whole number from 0, also written "300e9" or "1.5e3".
Expected<std::int64_t> parse_count(std::string_view text);

// "number of bytes with its unit, such as "25 MiB"": used in messages of the form "expected a ...".
std::string describe(Dimension dimension);

}  // namespace foretrain
