// Moves of ops past the peak of an order.
#pragma once

#include "simulator/order/dependencies.hpp"
#include "simulator/order/op_order.hpp"

namespace tidepool {

/// Lowers the peak of an order by moves. A move takes an op from before the peak to behind it, with all ops that must
/// follow it, or an op from behind the peak to before it, with all ops that it needs. Ends when no move lowers the
/// peak.
OpOrder move_ops(OpOrder order, const Lifetimes& lifetimes, const Dependencies& dependencies);

}  // namespace tidepool
