// The least recomputation of a small step, found by a search over the states of memory.
#pragma once

#include <cstdint>

#include "traces/trace.hpp"

namespace tidepool {

struct RecomputeStates {
  bool feasible = true;     ///< false: no plan exists
  bool exact = false;       ///< `least` is the length of a shortest path
  std::int64_t least = 0;   ///< ns: no plan without swaps recomputes less
  std::int64_t states = 0;  ///< number of states that were expanded
};

/// Shortest paths from the beginning of a step to its end. A state is the number of ops of the program that have run
/// and the set of versions in memory. To run, an op needs its inputs in memory, and room for its working set beside the
/// versions that stay. Any versions that fit may stay; the search tries every maximal set. An op that has run may run
/// again unless it is a source. The length of a path is the time of its repeated runs.
///
/// The search allows more than any plan without swaps may do, so the length of the shortest path is a bound: sizes add
/// up without addresses; a version that is overwritten may be kept beside its successor at no cost; the initial content
/// of a buffer is there whenever an op reads it; and versions from before the step may begin in memory even if they do
/// not fit together. States are expanded in the order of the lengths of the paths to them. If the limit ends the
/// search, the length of the shortest path that was not followed further is a bound.
///
/// For a step of one stream, alone or repeated: each iteration begins with the versions from before the step in
/// memory.
/// @param most_work  limit on the number of states and of sets that stay
/// @return  proves nothing if the step has more than 64 versions; views, empty versions and the initial content of
///          buffers that the step allocates do not count
RecomputeStates recompute_states(const Trace& trace, Bytes capacity, std::int64_t most_work);

}  // namespace tidepool
