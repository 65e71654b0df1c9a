// Division of whole numbers, rounded only once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// The double nearest to numerator / denominator (ties to even), as Python divides integers. Denominator > 0 and below
/// 2^126. One hardware division if neither is above 2^53 in magnitude, otherwise 54 steps of long division.
inline double quotient(std::int64_t numerator, Int128 denominator) {
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t whole =
      numerator < 0 ? 0 - static_cast<std::uint64_t>(numerator) : static_cast<std::uint64_t>(numerator);
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
  if (whole <= kExact && denominator <= static_cast<Int128>(kExact))
    return static_cast<double>(numerator) / static_cast<double>(static_cast<std::int64_t>(denominator));
  if (whole == 0) return 0;

  // Scale the numerator to [denominator, 2 * denominator), then take 55 bits: 53, one to round, one for the remainder.
  const auto width = [](Wide value) {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    return high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<std::uint64_t>(value));
  };
  Wide divisor = static_cast<Wide>(denominator), left = whole;
  int exponent = static_cast<int>(width(left)) - static_cast<int>(width(divisor));
  if (exponent >= 0)
    divisor <<= exponent;
  else
    left <<= -exponent;
  if (left < divisor) left <<= 1, --exponent;
  std::uint64_t bits = 0;
  for (int i = 0; i < 54; ++i) {
    bits <<= 1;
    if (left >= divisor) left -= divisor, bits |= 1;
    left <<= 1;
  }
  bits = bits << 1 | (left != 0 ? 1 : 0);
  // The lowest two of 55 bits decide; round half to even.
  std::uint64_t mantissa = bits >> 2;
  const std::uint64_t tail = bits & 3;
  if (tail == 3 || (tail == 2 && (mantissa & 1) != 0)) ++mantissa;
  const double rounded = std::ldexp(static_cast<double>(mantissa), exponent - 52);
  return numerator < 0 ? -rounded : rounded;
}

}  // namespace tidepool
