// The clock that runs on the host are timed with.
#pragma once

#include <chrono>

#include "traces/quantity.hpp"

namespace tidepool {

using Clock = std::chrono::steady_clock;

inline Nanos since(Clock::time_point start) {
  return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count()};
}

}  // namespace tidepool
