// List scheduling: orders that are built op by op.
#pragma once

#include "traces/step/dependencies.hpp"
#include "traces/step/op_order.hpp"

namespace tidepool {

/// Always takes the ready op after which the fewest bytes are alive; among equals, the first recorded. O(ops * ready
/// ops * uses).
OpOrder least_growth_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// The recorded order, but an op that frees more bytes than it allocates runs as early as possible. It brings the ops
/// that it needs with it if all of them together, at most 64, free more than they allocate.
OpOrder eager_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// List scheduling from the end: of the ops that may run last, always takes the one that adds the most live bytes;
/// among equals, the last recorded.
OpOrder latest_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

}  // namespace tidepool
