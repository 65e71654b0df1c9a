// Up to which sum of bytes plans are made that are to have places.
#pragma once

#include <algorithm>

#include "traces/quantity.hpp"

namespace tidepool {

/// Looks for the highest limit that is low enough: down by three quarters of what was too much, or four small steps,
/// until one is, for what lies scattered does not shrink with the limit; then halfway between the highest that was and
/// the lowest that was not.
class LimitSearch {
 public:
  /// @param first  the limit to begin with, than which none is higher
  /// @param least  smaller steps are not worth while; > 0
  LimitSearch(Bytes first, Bytes least) : limit_{first}, least_{least} {}

  Bytes limit() const { return limit_; }
  /// No further limit is worth while.
  bool done() const { return done_; }

  /// This one is low enough.
  void is_low() {
    low_ = limit_;
    if (high_ > Bytes{})
      halve();
    else
      done_ = true;
  }
  /// This one is not.
  /// @param by  what is too much, in bytes; > 0
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

  Bytes limit_, least_, low_, high_;  // the last two: 0 until there is one
  bool done_ = false;
};

}  // namespace tidepool
