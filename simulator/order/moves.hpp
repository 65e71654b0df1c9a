// Moves of ops past the peak of an order.
#pragma once

#include "simulator/order/dependencies.hpp"
#include "simulator/order/op_order.hpp"

namespace tidepool {

/// Lowers the peak of an order by moves: an op from before the peak to behind it with all that must follow it, or one
/// from behind it to before it with all that it needs. Ends when no such move lowers the peak.
OpOrder move_ops(OpOrder order, const Lifetimes& lifetimes, const Dependencies& dependencies);

}  // namespace tidepool
