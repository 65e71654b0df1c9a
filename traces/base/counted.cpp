#include "traces/base/counted.hpp"

#include <fmt/format.h>

#include "traces/base/numbers.hpp"

namespace tidepool {

std::string counted(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

}  // namespace tidepool
