// Exact search for the order with the lowest peak, for few ops.
#pragma once

#include <cstddef>

#include "traces/step/dependencies.hpp"
#include "traces/step/op_order.hpp"

namespace tidepool {

/// The lowest peak of any order, for steps of at most 64 ops: a search over the sets of ops that have run, those with
/// the lowest peak first.
/// @param most_sets  the most sets that are visited; if there are more sets or more ops, `exact` is false and the order
///                   is the recorded one
OpOrder exact_order(const Lifetimes& lifetimes, const Dependencies& dependencies, std::size_t most_sets);

}  // namespace tidepool
