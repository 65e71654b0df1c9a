// Memory that each part of a program keeps in addition to what earlier parts kept.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// Buffers of one kind that one line of the user's code, else one module or operator, makes.
struct GrowthRow {
  std::string cause;
  BufferKind kind = BufferKind::kUnknown;
  Bytes bytes;           ///< by which their least memory in the last part is larger than in the first that counts
  std::size_t grew = 0;  ///< number of parts in which it was larger than in the part before
  std::size_t kept = 0;  ///< number of buffers that the counted parts made and that were never freed
  BufferId newest;       ///< the last of these; none if there are none
};

/// What grows from part to part. A part's least memory is the least that is alive at once in it, so what comes and goes
/// in each part does not count. The first part does not count if there are four or more, since it makes what all later
/// ones use, such as optimizer state.
struct Growth {
  std::vector<std::size_t> bounds;  ///< positions in Trace::events() of the parts' begins, and of the last one's end
  bool by_iteration = true;         ///< the parts are the marked iterations, else a repeated series of allocations
  std::vector<Bytes> least;         ///< by part: of all memory
  std::vector<GrowthRow> rows;      ///< those that grew in at least half of the counted parts; most bytes first

  std::size_t parts() const { return bounds.empty() ? 0 : bounds.size() - 1; }
  std::size_t first() const { return parts() < 4 ? 0 : 1; }  ///< the first part that counts
  /// The number of times that a row could grow.
  std::size_t times() const { return parts() - 1 - first(); }
};

/// Compares the marked iterations of a trace. Of one without ops, such as a snapshot, it compares the copies of the
/// series of like allocations that covers most of it. No parts if there are fewer than three. O(n log n + rows *
/// parts).
Growth find_growth(const Trace& trace);

}  // namespace tidepool
