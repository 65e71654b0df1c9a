// Deadline of a planner.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "simulator/planner.hpp"

namespace tidepool {

/// Whether the limits ask a planner to stop: the time limit, counted from the construction, is over, or another thread
/// has set the stop flag.
class EndOfTime {
 public:
  explicit EndOfTime(const PackingLimits& limits) : stop_{limits.stop} {
    constexpr Nanos kLongest{1'000'000'000'000'000};  // far from the clock's end
    if (limits.time)
      deadline_ = std::chrono::steady_clock::now() + std::chrono::nanoseconds{std::min(*limits.time, kLongest).count()};
  }
  bool reached() const {
    return (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) ||
           (deadline_ && std::chrono::steady_clock::now() >= *deadline_);
  }

 private:
  const std::atomic<bool>* stop_;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
};

}  // namespace tidepool
