// Latest decisions of a run, as many as a page shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "simulator/engine/decisions/decision.hpp"

namespace tidepool {

/// The latest decisions of a run, at most kMost, and the number of decisions in each iteration.
class KeptDecisions {
 public:
  static constexpr std::size_t kMost = 20'000;

  void add(const Decision& decision) {
    ++counts_[decision.iteration];
    latest_.push_back(decision);
    if (latest_.size() > kMost) latest_.pop_front();
  }

  /// Forgets the iterations before this one.
  void leave_out_before(int iteration) {
    while (!latest_.empty() && latest_.front().iteration < iteration) latest_.pop_front();
    counts_.erase(counts_.begin(), counts_.lower_bound(iteration));
  }

  const std::deque<Decision>& latest() const { return latest_; }
  /// Number of all decisions in the iterations that are not forgotten, including the decisions that are not kept.
  std::int64_t count() const {
    std::int64_t sum = 0;
    for (const auto& [iteration, count] : counts_) sum += count;
    return sum;
  }

 private:
  std::deque<Decision> latest_;
  std::map<int, std::int64_t> counts_;  // by iteration
};

}  // namespace tidepool
