// Bounds on recomputation for each instant: some of the content with later uses does not fit.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/solvers/bounds/recompute_model.hpp"

namespace tidepool {

/// By op: a lower bound on the ns that a plan without swaps recomputes after the op's first run. Of the versions needed
/// later, those that do not fit beside the op's working set are absent at that time. Each of them costs its share of a
/// later run of its producer. The cheapest shares by bytes, the last one in part, are a bound (a fractional knapsack).
/// The shares of an op's outputs add up to its cost, so it is paid once. The inputs of ops that run again count as
/// present: RecomputeCut adds the cost of absent ones. O(n log n).
std::vector<std::int64_t> knapsack_bounds(const RecomputeModel& model, Bytes capacity);

/// By op, and one more for the end of the step: bytes in use under every plan, since they are in the working set, or
/// pinned, or needed later and impossible to recompute.
std::vector<Bytes> irreplaceable_bytes(const RecomputeModel& model);

}  // namespace tidepool
