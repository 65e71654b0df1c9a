// Orders of ops with a low peak.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/order/dependencies.hpp"
#include "simulator/order/lifetimes.hpp"

namespace tidepool {

/// An order of all ops of a step that keeps the dependencies.
struct OpOrder {
  std::vector<std::uint32_t> ops;
  Bytes peak;
  std::string rule;    ///< "recorded", "least", "eager", "latest", "moved" or "exact"
  bool exact = false;  ///< no order has a lower peak
};

/// The recorded order, with lifetimes as Lifetimes has them.
OpOrder recorded_order(const Lifetimes& lifetimes);

/// List scheduling: of the ops that may run, always the one after which least is alive; of equal ones the first
/// recorded. O(ops * ready ops * uses).
OpOrder least_growth_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// The recorded order, but an op that frees more than it allocates runs as soon as it may, with the ops that it needs
/// if all of them together do.
OpOrder eager_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// List scheduling from the end: the op after which most is alive runs as late as it may.
OpOrder latest_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// Lowers the peak of an order by moves: an op from before the peak to behind it with all that must follow it, or one
/// from behind it to before it with all that it needs. Ends when no such move lowers the peak.
OpOrder move_ops(OpOrder order, const Lifetimes& lifetimes, const Dependencies& dependencies);

/// The lowest peak of any order, for steps of few ops: by sets of ops that have run, those with the lowest peak first.
/// @param most_sets  that are looked at; if there are more, `exact` is false and the order is the recorded one
OpOrder exact_order(const Lifetimes& lifetimes, const Dependencies& dependencies, std::size_t most_sets);

/// The best of all of the above.
OpOrder lowest_peak_order(const Lifetimes& lifetimes, const Dependencies& dependencies);

/// No order has a lower peak: what is always alive and what one op needs while it runs.
Bytes peak_bound(const Lifetimes& lifetimes);

}  // namespace tidepool
