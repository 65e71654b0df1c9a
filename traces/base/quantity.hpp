// Units as types: a size cannot be added to a duration, and a bare number is neither.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidepool {

__extension__ using Int128 = __int128;

/// A whole number of one unit. Arithmetic stays inside the unit; scaling by a plain integer is allowed.
template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t count) : count_{count} {}

  constexpr std::int64_t count() const { return count_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity operator+(Quantity other) const { return Quantity{count_ + other.count_}; }
  constexpr Quantity operator-(Quantity other) const { return Quantity{count_ - other.count_}; }
  constexpr Quantity operator-() const { return Quantity{-count_}; }
  constexpr Quantity operator*(std::int64_t factor) const { return Quantity{count_ * factor}; }
  constexpr Quantity operator/(std::int64_t divisor) const { return Quantity{count_ / divisor}; }
  constexpr std::int64_t operator/(Quantity other) const { return count_ / other.count_; }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }

 private:
  std::int64_t count_ = 0;
};

using Bytes = Quantity<struct BytesTag>;  ///< sizes and device offsets
using Nanos = Quantity<struct NanosTag>;  ///< durations, and simulated time since the start of the run
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;  ///< transfer and memory rates

/// Least multiple of `granule` that is not below `size`. `granule` > 0.
constexpr Bytes round_up(Bytes size, Bytes granule) {
  return Bytes{(size.count() + granule.count() - 1) / granule.count() * granule.count()};
}

/// Time to move `size` at `rate`, rounded up to a whole nanosecond. `rate` > 0.
constexpr Nanos transfer_time(Bytes size, BytesPerSecond rate) {
  const auto scaled = static_cast<Int128>(size.count()) * 1'000'000'000;
  return Nanos{static_cast<std::int64_t>((scaled + rate.count() - 1) / rate.count())};
}

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n) << 30}; }
constexpr Nanos operator""_ns(unsigned long long n) { return Nanos{static_cast<std::int64_t>(n)}; }
constexpr Nanos operator""_us(unsigned long long n) { return Nanos{static_cast<std::int64_t>(n) * 1'000}; }
constexpr Nanos operator""_ms(unsigned long long n) { return Nanos{static_cast<std::int64_t>(n) * 1'000'000}; }
}  // namespace literals

/// Reads "512MiB", "12.5 GiB", "16G" (16 GiB), "80GB" or "0B". The unit is required: a bare number is refused.
/// @throws InputError  "'1xb' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, G or
/// T, as in 512MiB"
Bytes parse_bytes(std::string_view text);

/// Reads "10us", "1500ns", "2ms" or "3s"; whole numbers only.
/// @throws InputError  "'10' is not a duration; expected a whole number and ns, us, ms or s, as in 10us"
Nanos parse_nanos(std::string_view text);

/// Reads "12.5GB/s" (10^9) or "15GiB/s" (2^30); a decimal fraction is allowed. Rounded to a whole number of B/s.
/// @throws InputError  "'12.5' is not a rate; expected a number and kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s, as
/// in 12.5GB/s"
BytesPerSecond parse_rate(std::string_view text);

/// For people: "647.7 MiB", "83.97 ms", "14400 s": four significant digits, or a whole number of the largest unit.
/// parse_bytes() reads such sizes.
std::string to_text(Bytes size);
std::string to_text(Nanos time);

}  // namespace tidepool
