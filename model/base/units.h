// Strong types for the quantities Foretrain computes with, and the only functions that divide one by
// another. Value types, immutable, safe to use from any thread.
//
// GB is 10^9 bytes, GiB is 2^30 bytes; the two never mix silently because only Bytes exists here and
// text is made by model/base/format.h with the unit named.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace foretrain {

// A duration or a point on a simulated clock, in integer picoseconds (range about +-106 days).
class Time {
 public:
  constexpr Time() = default;
  static constexpr Time from_ps(std::int64_t ps) { return Time(ps); }
  static constexpr Time max() { return Time(std::numeric_limits<std::int64_t>::max()); }
  // Nearest picosecond; values beyond the range saturate at max().
  static Time from_seconds(double seconds) { return rounded(seconds * 1e12); }
  static Time from_us(double us) { return rounded(us * 1e6); }
  static Time from_ms(double ms) { return rounded(ms * 1e9); }

  constexpr std::int64_t ps() const { return ps_; }
  constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }
  constexpr double ms() const { return static_cast<double>(ps_) * 1e-9; }
  constexpr double us() const { return static_cast<double>(ps_) * 1e-6; }

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time a, Time b) { return Time(a.ps_ + b.ps_); }
  friend constexpr Time operator-(Time a, Time b) { return Time(a.ps_ - b.ps_); }
  friend constexpr Time operator*(Time a, std::int64_t n) { return Time(a.ps_ * n); }
  friend Time operator*(Time a, double f) { return rounded(static_cast<double>(a.ps_) * f); }
  friend constexpr double operator/(Time a, Time b) {
    return static_cast<double>(a.ps_) / static_cast<double>(b.ps_);
  }
  constexpr Time& operator+=(Time b) {
    ps_ += b.ps_;
    return *this;
  }
  constexpr Time& operator-=(Time b) {
    ps_ -= b.ps_;
    return *this;
  }

 private:
  explicit constexpr Time(std::int64_t ps) : ps_(ps) {}
  static Time rounded(double ps) {
    if (!(ps < 9.2e18)) return max();
    return Time(std::llround(ps));
  }
  std::int64_t ps_ = 0;
};

// A number of bytes (may be negative as a difference).
class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(std::int64_t count) : count_(count) {}
  constexpr std::int64_t count() const { return count_; }
  constexpr double gib() const { return static_cast<double>(count_) / 1073741824.0; }
  constexpr double mib() const { return static_cast<double>(count_) / 1048576.0; }
  constexpr double gb() const { return static_cast<double>(count_) * 1e-9; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes(a.count_ * n); }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return a * n; }
  // Rounds up: a shard of a buffer that does not divide evenly is padded.
  friend constexpr Bytes divide_up(Bytes a, std::int64_t n) { return Bytes((a.count_ + n - 1) / n); }
  constexpr Bytes& operator+=(Bytes b) {
    count_ += b.count_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes b) {
    count_ -= b.count_;
    return *this;
  }

 private:
  std::int64_t count_ = 0;
};

constexpr Bytes kKiB{1024};
constexpr Bytes kMiB{1048576};
constexpr Bytes kGiB{1073741824};

// Floating-point operations (a multiply-add counts as two). A double: a training run exceeds 2^63.
class Flops {
 public:
  constexpr Flops() = default;
  explicit constexpr Flops(double count) : count_(count) {}
  constexpr double count() const { return count_; }
  friend constexpr auto operator<=>(Flops, Flops) = default;
  friend constexpr Flops operator+(Flops a, Flops b) { return Flops(a.count_ + b.count_); }
  friend constexpr Flops operator*(Flops a, double n) { return Flops(a.count_ * n); }
  constexpr Flops& operator+=(Flops b) {
    count_ += b.count_;
    return *this;
  }

 private:
  double count_ = 0;
};

// Bytes per second.
class Bandwidth {
 public:
  constexpr Bandwidth() = default;
  static constexpr Bandwidth bytes_per_s(double rate) { return Bandwidth(rate); }
  static constexpr Bandwidth gb_per_s(double rate) { return Bandwidth(rate * 1e9); }
  constexpr double bytes_per_s() const { return rate_; }
  constexpr double gb_per_s() const { return rate_ * 1e-9; }
  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;
  friend constexpr Bandwidth operator*(Bandwidth a, double f) { return Bandwidth(a.rate_ * f); }
  friend constexpr Bandwidth operator+(Bandwidth a, Bandwidth b) { return Bandwidth(a.rate_ + b.rate_); }

 private:
  explicit constexpr Bandwidth(double rate) : rate_(rate) {}
  double rate_ = 0;
};

// Floating-point operations per second.
class FlopRate {
 public:
  constexpr FlopRate() = default;
  static constexpr FlopRate per_s(double rate) { return FlopRate(rate); }
  static constexpr FlopRate tflops(double rate) { return FlopRate(rate * 1e12); }
  constexpr double per_s() const { return rate_; }
  constexpr double tflops() const { return rate_ * 1e-12; }
  friend constexpr auto operator<=>(FlopRate, FlopRate) = default;
  friend constexpr FlopRate operator*(FlopRate a, double f) { return FlopRate(a.rate_ * f); }

 private:
  explicit constexpr FlopRate(double rate) : rate_(rate) {}
  double rate_ = 0;
};

namespace detail {
// Seconds to picoseconds, rounded up so that no transfer is ever faster than its bandwidth.
inline Time ceil_ps(double seconds) {
  const double ps = std::ceil(seconds * 1e12);
  if (!(ps < 9.2e18)) return Time::max();
  return Time::from_ps(static_cast<std::int64_t>(ps));
}
}  // namespace detail

// Time to move `bytes` at `bandwidth`, rounded up to a picosecond. Zero bytes take no time; a
// bandwidth that is not positive gives Time::max().
inline Time transfer_time(Bytes bytes, Bandwidth bandwidth) {
  if (bytes.count() <= 0) return Time{};
  if (!(bandwidth.bytes_per_s() > 0)) return Time::max();
  return detail::ceil_ps(static_cast<double>(bytes.count()) / bandwidth.bytes_per_s());
}

// Time to do `flops` at `rate`, rounded up to a picosecond, with the same edge cases.
inline Time compute_time(Flops flops, FlopRate rate) {
  if (flops.count() <= 0) return Time{};
  if (!(rate.per_s() > 0)) return Time::max();
  return detail::ceil_ps(flops.count() / rate.per_s());
}

}  // namespace foretrain
