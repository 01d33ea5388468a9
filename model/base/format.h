// Quantities as people read them, each with its unit. Independent of the locale: the decimal mark is always
// ".". Scaled forms keep three significant digits ("3.42 ms", "16.3 GB/s") and step to the next unit at 1000.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/units.h"

namespace foretrain {

// ps, ns, us, ms, s up to 10 minutes; beyond that "12 min 5 s", "3 h 20 min", "4.2 days". Time::max() is
// "forever".
std::string format_time(Time time);
std::string format_ms(Time time, int decimals = 2);  // always ms: "3420.00 ms"

// Binary units by size: "512 B", "25.0 MiB", "3.82 GiB".
std::string format_bytes(Bytes bytes);
std::string format_gib(Bytes bytes, int decimals = 2);  // always GiB (2^30): "3.82 GiB"
std::string format_mib(Bytes bytes, int decimals = 1);  // always MiB (2^20)
std::string format_gb(Bytes bytes, int decimals = 2);   // always GB (10^9)

std::string format_bandwidth(Bandwidth bandwidth);  // "16.3 GB/s" (decimal units)
std::string format_flop_rate(FlopRate rate);        // "165 TFLOPS"
std::string format_flops(Flops flops);              // "1.54 PFLOP"
std::string format_frequency(double hertz);         // "1.44 GHz"
std::string format_power(double watts);             // "165 W"
std::string format_energy(double joules);           // "120 J"; from 1 Wh on "1.25 kWh"

// Four significant digits: "812", "12.35 k", "125.2 M", "405.9 B" (B = 10^9), "15.00 T".
std::string format_count(double count);
std::string format_whole(std::int64_t count);                   // digits in groups: "125,226,240"
std::string format_percent(double fraction, int decimals = 1);  // 0.0234 -> "2.3 %"
std::string format_money(double usd);                           // "12.35 USD", "1,234,567 USD" from 10,000
std::string format_fixed(double value, int decimals);           // "3.142"; "-0.00" is written "0.00"

}  // namespace foretrain
