// The least memory in which a step may run without losing time.
#pragma once

#include "simulator/bounds/bound.hpp"

namespace tidepool {

/// M0: in less memory, no plan that the query admits runs without overhead. The query's own capacity does not matter.
/// Found by bisection with the quick bounds, to a millionth of the peak. A plan for less memory also runs in more, so
/// one bound just below the answer proves it for all smaller capacities.
Bytes least_free_capacity(BoundQuery query);

}  // namespace tidepool
