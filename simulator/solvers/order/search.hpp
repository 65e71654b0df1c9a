// Search for an order with a low peak: list scheduling, moves of ops past the peak and, for few ops, exact search.
#pragma once

#include <cstddef>
#include <string>

#include "traces/step/dependencies.hpp"
#include "traces/step/op_order.hpp"

namespace tidepool {

/// The most orders that move_ops() tries.
inline constexpr int kMostMoves = 20'000;
/// With more ops than this, move_ops() tries as many fewer orders, since a try is linear in the ops.
inline constexpr std::size_t kMostOpsOfAllMoves = 20'000;

/// Lowers the peak of an order by moves. A move takes an op from before the peak to behind it, with all ops that must
/// follow it, or an op from behind the peak to before it, with all ops that it needs. Ends when no move lowers the
/// peak, or after `most` tries (fewer in a step of more than kMostOpsOfAllMoves ops).
OpOrder move_ops(OpOrder order, const Lifetimes& lifetimes, const Dependencies& dependencies, int most = kMostMoves);

/// The best order found by list scheduling, moves and, for few ops, exact search.
/// @param most_moves  as for move_ops(); the exact search visits at most ten times as many sets of ops
OpOrder lowest_peak_order(const Lifetimes& lifetimes, const Dependencies& dependencies, int most_moves = kMostMoves);

/// The order by one of the rules "recorded", "least", "eager", "latest" and "lowest".
/// @param most_moves  for "lowest", as in lowest_peak_order()
/// @throws InputError  "no rule named 'last', did you mean 'least'?; known: ..."
OpOrder order_by(const std::string& rule, const Lifetimes& lifetimes, const Dependencies& dependencies,
                 int most_moves = kMostMoves);

/// The lowest peak of any order, for steps of at most 64 ops: a search over the sets of ops that have run, those with
/// the lowest peak first.
/// @param most_sets  the most sets that are visited; if there are more sets or more ops, `exact` is false and the order
///                   is the recorded one
OpOrder exact_order(const Lifetimes& lifetimes, const Dependencies& dependencies, std::size_t most_sets);

/// Always takes the ready op after which the fewest bytes are alive; among equals, the first recorded. O((uses +
/// dependencies) * log(ops)).
OpOrder least_growth_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// The recorded order, but an op that frees more bytes than it allocates runs as early as possible. It brings the ops
/// that it needs with it if all of them together, at most 64, free more than they allocate.
OpOrder eager_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// List scheduling from the end: of the ops that may run last, always takes the one that adds the most live bytes;
/// among equals, the last recorded.
OpOrder latest_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

}  // namespace tidepool
