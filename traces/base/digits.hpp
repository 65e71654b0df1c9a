// Numbers with some significant digits, without exponents.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace tidepool {

/// A number to so many significant digits ("1.5", "0.0123"); a larger one to a whole number ("16400"). Below 10^-4, it
/// has an exponent.
inline std::string with_digits(double number, int digits) {
  const bool fits = std::abs(number) < std::pow(10, digits) - 0.5;  // 999.5 would be rounded to four digits
  return fits ? fmt::format("{:.{}g}", number, digits) : fmt::format("{:.0f}", number);
}

}  // namespace tidepool
