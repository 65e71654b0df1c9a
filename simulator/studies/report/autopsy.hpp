// Analysis of a run that was out of memory: the buffers that held the memory, and remedies.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/engine/decisions/decision.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/studies/report/history.hpp"

namespace tidepool {

/// A buffer that held memory when a request found none.
struct Occupant {
  BufferId buffer;
  Bytes offset, held;
  bool needed = false;  ///< the op that was about to run uses it, so it cannot be evicted
  OpId next_use;        ///< the first op, from that op on, that uses it; none: no such op
  bool operator==(const Occupant&) const = default;
};

/// The buffers to evict so that a request finds room, see cheapest_window() and least_buffers().
struct Eviction {
  std::vector<BufferId> buffers;  ///< empty: no eviction makes enough room
  Bytes held;                     ///< bytes of their places
  bool side_by_side = true;       ///< the places are adjacent; false: sizes alone decide (segments, or no addresses)
};

/// Another way to run the step at the same capacity, with its outcome.
struct Remedy {
  std::string pool, policy;
  Outcome outcome = Outcome::kOk;
  double overhead = 0;  ///< makespan / baseline - 1; only if the outcome is ok
};

struct Autopsy {
  Shortage shortage;
  Bytes capacity;
  std::vector<Occupant> occupants;  ///< by address
  Bytes placed;                     ///< bytes of all occupants
  Bytes needed;                     ///< bytes of the occupants that the op needs
  Eviction eviction;
  std::vector<Remedy> remedies;         ///< all remedies that were tried: the cheapest first, those that failed last
  std::optional<Bytes> least_capacity;  ///< the least with which the same pool and policy end well; none: not found
};

/// The address range of `wanted` bytes in [0, end) that is cheapest to empty: it has the fewest bytes in use; among
/// equals, the latest next use; then the lowest address. It has no occupant that is needed. `occupants` are in order of
/// address and do not overlap. O(n log n).
Eviction cheapest_window(std::span<const Occupant> occupants, Bytes end, Bytes wanted);

/// A cheap eviction of buffers that are not needed, if addresses do not matter: the smallest buffer of at least
/// `missing` bytes; if there is none, the largest buffer and, for the rest of the bytes, the same again.
Eviction least_buffers(std::span<const Occupant> occupants, Bytes missing);

/// Analyses a run that was out of memory or infeasible. Tries a few other pools and policies at its capacity, and
/// searches for the least capacity at which the run ends well, in steps of a hundredth of the peak (see Bisection). For
/// traces of more than 20,000 ops, it tries fewer policies and does not search for the capacity. Deterministic.
/// @param history  history of the run up to its end
/// @return  none if the run ended in another way
std::optional<Autopsy> autopsy_of(const Trace& trace, const RunSpec& spec, const History& history);

}  // namespace tidepool
