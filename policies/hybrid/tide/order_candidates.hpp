// Orders of a step that a planner may try.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "simulator/ordered_step.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The step in the orders of the rules `eager`, `lowest`, `least` and `latest`, without orders that equal an earlier
/// one. Empty if the step cannot be reordered, and under a paper's assumptions.
/// @param moves  as for lowest_peak_order()
std::vector<std::shared_ptr<const OrderedStep>> order_candidates(const Trace& trace, const RunSpec& spec, int moves);

/// Sorts the steps by the results of `look`, and calls `improves` for the best two, the best one first. Returns the
/// last step for which `improves` returns true; null if there is none.
std::shared_ptr<const OrderedStep> best_order(std::vector<std::shared_ptr<const OrderedStep>> steps,
                                              const std::function<Result(const Trace&)>& look,
                                              const std::function<bool(const Trace&)>& improves);

}  // namespace tidepool
