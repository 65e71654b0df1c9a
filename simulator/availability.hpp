// When a piece of device memory that was given up may be written again.
#pragma once

#include <map>

#include "traces/quantity.hpp"

namespace tidepool {

/// Ranges of addresses whose last user ends later than the lanes have come. A place that reuses such a range must wait.
/// Every range is kept until it is past for all lanes, so the map stays as small as what is under way. O(log n).
class Availability {
 public:
  /// [offset, offset + size) may be written from `time` on.
  void release(Bytes offset, Bytes size, Nanos time);

  /// The earliest time at which all of [offset, offset + size) may be written; forgets the range.
  Nanos take(Bytes offset, Bytes size);

  /// Forgets what is past at `time` for every lane.
  void forget_before(Nanos time);

  bool empty() const { return ranges_.empty(); }

 private:
  struct Range {
    Bytes end;
    Nanos time;
  };
  std::map<Bytes, Range> ranges_;  // by first address; disjoint
  std::size_t swept_size_ = 64;    // forget_before() walks the map only when it has grown to this
};

}  // namespace tidepool
