// Why a run was out of memory, and what would have helped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/run.hpp"

namespace tidepool {

/// One buffer that lay there when the place was not found.
struct Occupant {
  BufferId buffer;
  Bytes offset, held;
  bool needed = false;  ///< by the op itself: it cannot go
  OpId next_use;        ///< the op that uses it next; none: none does, or the step's end
};

/// Another way to run the step at the same capacity.
struct Remedy {
  std::string pool, policy;
  Outcome outcome = Outcome::kOk;
  double overhead = 0;  ///< makespan / baseline - 1; of outcome ok only
};

struct Autopsy {
  OpId op;          ///< that was to run; none: the step's end
  BufferId buffer;  ///< that found no place
  Bytes wanted, held, capacity;
  Bytes largest_hole;  ///< as the pool says
  bool addresses = true;
  std::vector<Occupant> occupants;  ///< by address
  Bytes needed_by_op;               ///< of the occupants
  /// The buffers in the run of addresses that is cheapest to empty so that the request fits: least bytes, then latest
  /// next use. Empty if what the op needs is everywhere in the way; without addresses, any buffers.
  std::vector<BufferId> would_have_to_go;
  Bytes would_go;                       ///< their bytes
  std::vector<Remedy> remedies;         ///< those tried, the cheapest first, those that do not help last
  std::optional<Bytes> least_capacity;  ///< at which the same pool and policy work, to a hundredth of the peak
};

}  // namespace tidepool
