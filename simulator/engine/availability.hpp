// Earliest time at which freed device memory may be written again.
#pragma once

#include <algorithm>
#include <map>

#include "simulator/engine/links.hpp"

namespace tidepool {

/// Address ranges that were freed before their last user had ended on its lane. A buffer placed in such a range must
/// wait. Ranges whose time is past stay until forget() removes them. Cost of release() and take(): O(log ranges),
/// amortised.
class Availability {
 public:
  /// [offset, offset + size) may be written from `time` on.
  void release(Bytes offset, Bytes size, const Moment& time);

  /// The earliest time at which all of [offset, offset + size) may be written; forgets the range.
  Moment take(Bytes offset, Bytes size);

  /// Forgets the ranges for which is_past(const Moment&) is true. Does nothing until there are at least 64
  /// ranges, and twice as many as it left the last time.
  template <class IsPast>
  void forget(IsPast is_past) {
    if (ranges_.size() < swept_size_) return;
    std::erase_if(ranges_, [&](const auto& range) { return is_past(range.second.time); });
    swept_size_ = std::max<std::size_t>(64, 2 * ranges_.size());
  }

  /// Calls visit(first, end, const Moment&) for every range in address order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [first, range] : ranges_) visit(first, range.end, range.time);
  }
  bool empty() const { return ranges_.empty(); }

 private:
  struct Range {
    Bytes end;
    Moment time;
  };
  std::map<Bytes, Range> ranges_;  // by first address; disjoint
  std::size_t swept_size_ = 64;    // number of ranges at which forget() visits them
};

}  // namespace tidepool
