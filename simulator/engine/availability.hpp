// Earliest time at which freed device memory may be written again.
#pragma once

#include <algorithm>
#include <cstddef>

#include "simulator/engine/disjoint_ranges.hpp"
#include "simulator/engine/links.hpp"

namespace tidepool {

/// Address ranges that were freed before their last user had ended on its lane. A buffer placed in such a range must
/// wait. Ranges whose time is past stay until forget() removes them. Cost of release() and take(): that of a change of
/// DisjointRanges, amortised.
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
    if (count_ < swept_size_) return;
    count_ = ranges_.remove_if(is_past);
    swept_size_ = std::max<std::size_t>(64, 2 * count_);
  }

  /// Calls visit(first, end, const Moment&) for every range in address order.
  template <class Visit>
  void for_each(Visit visit) const {
    ranges_.for_each([&](const auto& range) { visit(range.first, range.end, range.value); });
  }
  bool empty() const { return ranges_.empty(); }

 private:
  void add(Bytes first, Bytes end, const Moment& time);

  DisjointRanges<Moment> ranges_;
  std::size_t count_ = 0;        // number of ranges
  std::size_t swept_size_ = 64;  // number of ranges at which forget() visits them
};

}  // namespace tidepool
