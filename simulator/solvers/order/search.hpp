// Search for an order with a low peak.
#pragma once

#include <string>

#include "simulator/solvers/order/moves.hpp"
#include "traces/step/dependencies.hpp"
#include "traces/step/op_order.hpp"

namespace tidepool {

/// The best order found by list scheduling, moves and, for few ops, exact search.
/// @param most_moves  as for move_ops(); the exact search visits at most ten times as many sets of ops
OpOrder lowest_peak_order(const Lifetimes& lifetimes, const Dependencies& dependencies, int most_moves = kMostMoves);

/// The order by one of the rules "recorded", "least", "eager", "latest" and "lowest".
/// @param most_moves  for "lowest", as in lowest_peak_order()
/// @throws InputError  "no rule named 'last', did you mean 'least'?; known: ..."
OpOrder order_by(const std::string& rule, const Lifetimes& lifetimes, const Dependencies& dependencies,
                 int most_moves = kMostMoves);

}  // namespace tidepool
