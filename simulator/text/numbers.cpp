#include "simulator/text/numbers.hpp"

#include <fmt/format.h>

namespace tidepool {

std::string grouped(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  const std::ptrdiff_t first_digit = number < 0 ? 1 : 0;
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > first_digit; i -= 3)
    text.insert(static_cast<std::size_t>(i), ",");
  return text;
}

std::string short_number(double number) {
  if (number >= 1e9) return fmt::format("{:.3g} G", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.3g} M", number / 1e6);
  if (number >= 1e3) return fmt::format("{:.3g} k", number / 1e3);
  return fmt::format("{:.3g}", number);
}

}  // namespace tidepool
