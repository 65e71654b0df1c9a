// Counts for people, with the noun in singular or plural.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidepool {

/// "1 run", "3,426 runs".
std::string counted(std::int64_t number, std::string_view what);

}  // namespace tidepool
