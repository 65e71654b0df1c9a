// A search for the largest sum of bytes at which plans still have places.
#pragma once

#include <algorithm>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// Searches for the highest limit that is low enough. It goes down by three quarters of the excess until a limit is low
/// enough, each time by at least four smallest steps, since fragmentation need not shrink with the limit. Then it goes
/// halfway between the highest limit that was low enough and the lowest that was not.
class LimitSearch {
 public:
  /// @param first  the first limit, which is also the highest
  /// @param least  the smallest step; > 0
  LimitSearch(Bytes first, Bytes least) : limit_{first}, least_{least} {}

  Bytes limit() const { return limit_; }
  /// Whether the search is over.
  bool done() const { return done_; }

  /// Call if the current limit is low enough.
  void is_low() {
    low_ = limit_;
    if (high_ > Bytes{})
      halve();
    else
      done_ = true;
  }
  /// Call if the current limit is too high.
  /// @param by  the excess in bytes; > 0
  void is_high(Bytes by) {
    high_ = limit_;
    if (low_ > Bytes{}) return halve();
    limit_ -= std::max(by * 3 / 4, least_ * 4);
    done_ = limit_ <= Bytes{};
  }

 private:
  void halve() {
    limit_ = low_ + (high_ - low_) / 2;
    done_ = high_ - low_ < least_ * 2;
  }

  Bytes limit_, least_, low_, high_;  // low_ and high_: 0 until there is one
  bool done_ = false;
};

}  // namespace tidepool
