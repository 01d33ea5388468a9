// Any bytes as a quantity: never a crash; what is accepted is finite and not negative; every refusal says
// why.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/base/format.h"
#include "model/base/quantity.h"
#include "model/base/text.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using foretrain::Dimension;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Dimension dimension :
       {Dimension::bytes, Dimension::bandwidth, Dimension::time, Dimension::flop_rate, Dimension::power,
        Dimension::energy, Dimension::frequency, Dimension::money, Dimension::price_per_hour}) {
    const auto value = foretrain::parse_quantity(text, dimension);
    require(value ? std::isfinite(*value) && *value >= 0 : !value.error().front().message.empty());
    if (!value) require(!foretrain::find_invalid_utf8(to_text(value.error())).has_value());
  }
  if (const auto bytes = foretrain::parse_bytes(text)) {
    require(bytes->count() >= 0);
    // Rounded to three digits the largest counts would exceed the range.
    const bool may_round_up = bytes->count() > 9'000'000'000'000'000'000;
    require(may_round_up || foretrain::parse_bytes(foretrain::format_bytes(*bytes)).has_value());
  }
  if (const auto time = foretrain::parse_time(text)) {
    require(time->ps() >= 0);
    require(!foretrain::format_time(*time).empty());
  }
  if (const auto signed_time = foretrain::parse_time(text, foretrain::Sign::any)) {
    require(!foretrain::format_time(*signed_time).empty());
  }
  (void)foretrain::parse_number(text);
  if (const auto count = foretrain::parse_count(text)) require(*count >= 0);
  return 0;
}
