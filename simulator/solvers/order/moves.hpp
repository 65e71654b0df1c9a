// Moves of ops past the peak of an order.
#pragma once

#include "traces/step/dependencies.hpp"
#include "traces/step/op_order.hpp"

namespace tidepool {

/// The most orders that move_ops() tries.
inline constexpr int kMostMoves = 20'000;

/// Lowers the peak of an order by moves. A move takes an op from before the peak to behind it, with all ops that must
/// follow it, or an op from behind the peak to before it, with all ops that it needs. Ends when no move lowers the
/// peak, or after `most` tries.
OpOrder move_ops(OpOrder order, const Lifetimes& lifetimes, const Dependencies& dependencies, int most = kMostMoves);

}  // namespace tidepool
