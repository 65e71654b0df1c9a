// Values of options that must lie in a range. Each refusal names the option, its value and the range.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "simulator/options.hpp"
#include "traces/base/error.hpp"

namespace tidepool {

/// @throws InputError  "g10: option 'delta' is '-0.5'; expected 0 to 1000", unless the value holds
inline void expect(bool holds, const std::string& owner, const Options& options, const std::string& name,
                   std::string_view expected) {
  if (!holds)
    throw InputError{fmt::format("{}: option '{}' is '{}'; expected {}", owner, name, options.word(name), expected)};
}

/// A whole number from `least` to `most`.
/// @throws InputError  "rotor: option 'stages' is '0'; expected a whole number from 1 to 200"
template <std::integral Count = std::size_t>
Count count_of(const std::string& owner, const Options& options, const std::string& name,
               std::type_identity_t<Count> most, std::type_identity_t<Count> least = 1) {
  const double value = options.number(name);
  expect(value >= static_cast<double>(least) && value <= static_cast<double>(most) && value == std::floor(value), owner,
         options, name, fmt::format("a whole number from {} to {}", least, most));
  return static_cast<Count>(value);
}

/// A number from 0 to `most`.
/// @throws InputError  "g10: option 'delta' is '-0.5'; expected 0 to 1000"
inline double number_of(const std::string& owner, const Options& options, const std::string& name, double most) {
  const double value = options.number(name);
  expect(value >= 0 && value <= most, owner, options, name, fmt::format("0 to {}", most));
  return value;
}

/// A size of at least 1 B.
/// @throws InputError  "best-fit: option 'alignment' is '0B'; expected at least 1B"
inline Bytes size_of(const std::string& owner, const Options& options, const std::string& name) {
  const Bytes value = options.bytes(name);
  expect(value >= 1_B, owner, options, name, "at least 1B");
  return value;
}

}  // namespace tidepool
