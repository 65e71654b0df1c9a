// Numbers as text for people.
#pragma once

#include <cstdint>
#include <string>

namespace tidepool {

/// "3,426".
std::string grouped(std::int64_t number);

/// "4.9 M", "12.3 k", "870": to three significant digits, or a whole number of G, for numbers of at least 0.
std::string short_number(double number);

}  // namespace tidepool
