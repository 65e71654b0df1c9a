// The cheapest contiguous address range for a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "traces/base/quantity.hpp"
#include "traces/ids.hpp"

namespace tidepool {

/// An address range: free, or taken by a version that may be evicted at a cost, or by a version that must stay.
struct Stretch {
  Bytes size;
  double cost = 0;     ///< cost of evicting its version; 0 if it is free
  VersionId version;   ///< none if it is free
  bool fixed = false;  ///< taken by a version that must stay
};

/// Stretches [first, last) of a list, none of them fixed.
struct Window {
  std::size_t first = 0;
  std::size_t last = 0;
  double cost = std::numeric_limits<double>::infinity();
};

/// Calls visit(Window) for every window of at least `need` bytes that is too small without its last stretch: in the
/// order of their ends, the longest window of each end first. `need` > 0. Window::cost is the sum over its stretches. A
/// window of free stretches only is left out: the pool would have used it. One pass, O(stretches).
/// @param shrink_at_end  false: of the windows that end with the last stretch of the list, only the longest is visited,
///                       as in OneFlow's EvictAndFindPieceOnce
template <class Visit>
void for_each_window(const std::vector<Stretch>& stretches, Bytes need, bool shrink_at_end, Visit visit) {
  std::size_t first = 0;
  Bytes size;
  double cost = 0;
  std::size_t held = 0;
  const auto shrink = [&](std::size_t last) {
    while (size >= need) {
      if (held > 0) visit(Window{first, last, cost});
      if (last == stretches.size() && !shrink_at_end) return;
      size -= stretches[first].size;
      cost = size == Bytes{} ? 0 : cost - stretches[first].cost;  // drops the rounding error of the sum
      held -= stretches[first].version.valid() ? 1 : 0;
      ++first;
    }
  };
  for (std::size_t last = 0; last < stretches.size(); ++last) {
    const Stretch& next = stretches[last];
    if (next.fixed) {
      first = last + 1;
      size = {};
      cost = 0;
      held = 0;
      continue;
    }
    size += next.size;
    cost += next.cost;
    held += next.version.valid() ? 1 : 0;
    shrink(last + 1);
  }
}

}  // namespace tidepool
