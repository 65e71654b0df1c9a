// The clock that measures runs on the host.
#pragma once

#include <chrono>

#include "traces/base/quantity.hpp"

namespace tidepool {

using Clock = std::chrono::steady_clock;

inline Nanos since(Clock::time_point start) {
  return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count()};
}

}  // namespace tidepool
