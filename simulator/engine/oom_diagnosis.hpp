// The request that a run could not place when it was out of memory.
#pragma once

#include <optional>

#include "simulator/run_spec.hpp"

namespace tidepool {

struct Shortage {
  OpId before;        ///< the next op of the program; none: the end of the step
  VersionId version;  ///< the version without a place
  Bytes size;
  Bytes held;          ///< sum of the sizes of all versions that have a place
  Bytes largest_hole;  ///< as the pool reports it; may be larger than the real one by the pool's rounding
  bool operator==(const Shortage&) const = default;
};

/// Runs like simulate(), but always in the order of `trace`.
/// @return  the failed request; none if the run ended neither out of memory nor as infeasible
std::optional<Shortage> shortage_of(const Trace& trace, const RunSpec& spec);

}  // namespace tidepool
