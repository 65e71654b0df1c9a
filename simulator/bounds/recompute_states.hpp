// The least recomputation of a small step, by a search through the states of memory.
#pragma once

#include <cstdint>

#include "traces/trace.hpp"

namespace tidepool {

struct RecomputeStates {
  bool feasible = true;     ///< false: no plan exists
  bool exact = false;       ///< `least` is the optimum of what the search allows
  std::int64_t least = 0;   ///< ns: no plan without swaps recomputes less
  std::int64_t states = 0;  ///< that were left
};

/// Shortest paths from the beginning of a step to its end. A state is the number of ops of the program that have run
/// and the set of versions in memory. Running an op needs its inputs there, and room for its working set beside what
/// stays; what stays is any subset of what was there that fits, and the search tries every largest one. An op that has
/// run may run again unless it is a source. A path is as long as what it runs again.
///
/// More is allowed than any plan without swaps may do, so that the length of the shortest path is a bound: sizes are
/// added up without addresses, a version that is written in place may be kept beside its successor at no cost, what a
/// buffer holds when it is allocated is there whenever it is read, and versions that existed before the step may begin
/// in memory whether they fit together or not. States are left in the order of their lengths; where there are more than
/// the limit, the shortest that has not been left is a bound.
///
/// Applies to a step of one stream, alone or repeated: each iteration begins with what existed before the step in
/// memory.
/// @param most_work  states and choices of what stays that are looked at
/// @return  nothing proved where more than 64 versions are of use later than at once
RecomputeStates recompute_states(const Trace& trace, Bytes capacity, std::int64_t most_work);

}  // namespace tidepool
