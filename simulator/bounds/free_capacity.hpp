// The memory that a step cannot do without if nothing is to be lost.
#pragma once

#include "simulator/bounds/bound.hpp"

namespace tidepool {

/// M0: no plan that the query admits, whatever its capacity says, runs without overhead in less than this; found by
/// bisection with the quick bounds, to a millionth of the peak. What runs in less memory also runs in more: one bound
/// just below the answer proves it for everything below.
Bytes least_free_capacity(BoundQuery query);

}  // namespace tidepool
