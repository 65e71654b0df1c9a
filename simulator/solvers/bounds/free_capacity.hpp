// The least memory in which a step may run without losing time.
#pragma once

#include "simulator/solvers/bounds/bound.hpp"

namespace tidepool {

/// A capacity below which the quick bounds prove that no plan of the query runs without overhead. The query's own
/// capacity does not matter. Found by bisection, to a millionth of the peak. A plan for less memory also runs in more,
/// so one bound just below the answer proves it for all smaller capacities.
Bytes least_free_capacity(BoundQuery query);

}  // namespace tidepool
