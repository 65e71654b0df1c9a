// Cost of bringing content back, for policies.
#pragma once

#include "simulator/state.hpp"

namespace tidepool {

/// The time to have `v` again if it is dropped now, or was: to run its producer, and to bring back what that reads and
/// is absent, each version once. What is on the host is copied; all else is recomputed. Times are summed, as if none
/// overlapped. VersionState::cost is that of the producer alone. O(absent versions that it is made from).
Nanos chain_cost(const View& view, VersionId v);

}  // namespace tidepool
