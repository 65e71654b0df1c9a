// Work that must be run again because not all content that is needed later fits, by instant.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/bounds/recompute_model.hpp"

namespace tidepool {

/// By op: ns that any plan without swaps recomputes after it has run for the first time. Of what the program needs
/// later, at least what exceeds the room beside the op's working set is absent then, and each absent version has its
/// share in a later run of the op that makes it; so the cheapest shares by bytes, the last one in part, are a bound (a
/// fractional knapsack). Ops that make several versions are paid once, because shares add up to their cost. What those
/// ops read themselves is taken to be there: see RecomputeCut for what it costs if it is not. O(n log n).
std::vector<std::int64_t> knapsack_bounds(const RecomputeModel& model, Bytes capacity);

/// By op, and one more for the end of the step: bytes that are taken whatever the plan, because they are in the working
/// set, or pinned, or are needed later and cannot be had again.
std::vector<Bytes> irreplaceable_bytes(const RecomputeModel& model);

}  // namespace tidepool
