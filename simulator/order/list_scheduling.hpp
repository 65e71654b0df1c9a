// Orders that are made op by op, by a rule.
#pragma once

#include "simulator/order/dependencies.hpp"
#include "simulator/order/op_order.hpp"

namespace tidepool {

/// List scheduling: of the ops that may run, always the one after which least is alive; of equal ones the first
/// recorded. O(ops * ready ops * uses).
OpOrder least_growth_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// The recorded order, but an op that frees more than it allocates runs as soon as it may, with the ops that it needs
/// if all of them together do.
OpOrder eager_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// List scheduling from the end: the op after which most is alive runs as late as it may.
OpOrder latest_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

}  // namespace tidepool
