// Capacities in the notation of the command line.
#pragma once

#include <optional>
#include <string_view>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// Reads "0.5x" or "50%", a share of the peak; none if the text has neither unit.
/// @throws InputError  "'-1x' is not a share of the peak; expected a number and x or %, above 0x and below 1000000x, as
///                     in 0.5x"
std::optional<double> parse_share(std::string_view text);

/// Reads "16GiB", "0.5x" or "50%" (of `ideal_peak`), or "none" (kNoLimit).
/// @throws InputError  for any other text
Bytes parse_capacity(std::string_view text, Bytes ideal_peak);

}  // namespace tidepool
