// Why a run was out of memory, and what would have helped.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/engine/oom_diagnosis.hpp"
#include "simulator/report/history.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {

/// A buffer that had a place when another one found none.
struct Occupant {
  BufferId buffer;
  Bytes offset, held;
  bool needed = false;  ///< by the op that was to run: it cannot go
  OpId next_use;        ///< the first op from there on that uses it; none: only what comes after the step
  bool operator==(const Occupant&) const = default;
};

/// The fewest bytes whose removal makes room for a request.
struct Eviction {
  std::vector<BufferId> buffers;  ///< empty: no set that may go makes enough room
  Bytes held;                     ///< of their places
  bool side_by_side = true;       ///< false: chosen by size alone, as the pool does not own one piece of memory
};

/// Another way to run the step at the same capacity.
struct Remedy {
  std::string pool, policy;
  Outcome outcome = Outcome::kOk;
  double overhead = 0;  ///< makespan / baseline - 1; of outcome ok only
};

struct Autopsy {
  Shortage shortage;
  Bytes capacity;
  std::vector<Occupant> occupants;  ///< by address
  Bytes placed;                     ///< of all of them
  Bytes needed;                     ///< of those that the op needs
  Eviction eviction;
  std::vector<Remedy> remedies;         ///< what was tried: the cheapest first, what does not help last
  std::optional<Bytes> least_capacity;  ///< that suffices for the same pool and policy, see autopsy()
};

/// The run of addresses in [0, end) that is cheapest to empty for `wanted` bytes: least bytes, then the one whose first
/// next use is the latest, then the lowest. `occupants` lie by address and do not overlap. O(n log n).
Eviction cheapest_window(std::span<const Occupant> occupants, Bytes end, Bytes wanted);

/// The same where addresses do not matter: the smallest buffer that suffices for what is `missing`, or the largest
/// ones.
Eviction least_buffers(std::span<const Occupant> occupants, Bytes missing);

/// Examines a run that ended for want of memory. Tries a few other pools and policies at its capacity, and looks for
/// the least capacity at which the run ends well, in steps of a hundredth of the peak: see Bisection for what is tried.
/// Deterministic; for large traces it tries less.
/// @param history  of the run as far as it came
/// @return  nothing if the run was not out of memory
std::optional<Autopsy> autopsy_of(const Trace& trace, const RunSpec& spec, const History& history);

}  // namespace tidepool
