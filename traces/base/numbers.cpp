#include "traces/base/numbers.hpp"

#include <fmt/format.h>

#include <array>

#include "traces/base/digits.hpp"

namespace tidepool {

std::string grouped(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  const std::ptrdiff_t first_digit = number < 0 ? 1 : 0;
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > first_digit; i -= 3)
    text.insert(static_cast<std::size_t>(i), ",");
  return text;
}

std::string short_number(double number) {
  constexpr std::array kUnits{"", " k", " M", " G"};
  std::size_t unit = 0;
  while (number >= 999.5 && unit + 1 < kUnits.size()) number /= 1e3, ++unit;  // 999.5 is "1 k"
  return with_digits(number, 3) + kUnits[unit];
}

}  // namespace tidepool
