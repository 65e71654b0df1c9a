// Cost of each iteration of a plan.
#pragma once

#include <vector>

#include "simulator/plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Totals of every iteration of a plan, checked and executed as in replay(), which returns the mean of the last ones.
/// Peaks and `actions` are those of all iterations so far.
/// @throws PlanError  as replay() does
std::vector<Totals> costs_of_iterations(const Trace& trace, const RunSpec& spec, const Plan& plan);

/// The same, all iterations together: times, copied bytes and counts are sums.
Totals whole_cost(const Trace& trace, const RunSpec& spec, const Plan& plan);

}  // namespace tidepool
