// Search for an order with a low peak.
#pragma once

#include "simulator/order/dependencies.hpp"
#include "simulator/order/op_order.hpp"

namespace tidepool {

/// The best order found by list scheduling, moves and, for few ops, exact search.
OpOrder lowest_peak_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

}  // namespace tidepool
