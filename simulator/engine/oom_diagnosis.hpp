// Request that a run could not place when it was out of memory.
#pragma once

#include <optional>

#include "simulator/run_spec.hpp"

namespace tidepool {

struct Shortage {
  OpId before;        ///< the op of the program that was to run; none: the end of the step
  VersionId version;  ///< that found no place
  Bytes size;
  Bytes held;          ///< by versions
  Bytes largest_hole;  ///< as the pool says; may be too large by what it rounds up
  bool operator==(const Shortage&) const = default;
};

/// Runs as simulate() does and gives what was short; nothing if the run did not end for want of memory.
std::optional<Shortage> shortage_of(const Trace& trace, const RunSpec& spec);

}  // namespace tidepool
