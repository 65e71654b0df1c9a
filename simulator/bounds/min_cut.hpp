// The best single instant at which to ask what a plan must run again.
#pragma once

#include "simulator/bounds/recompute_cut.hpp"

namespace tidepool {

/// A bound on recomputation with the choice that goes with it: a plan that keeps `resident` from `instant` on, and runs
/// `again` when it needs them, comes as close to the bound as memory after the instant allows.
struct MinCutPlan {
  bool feasible = true;              ///< false: no plan exists at all
  std::int64_t bound = 0;            ///< ns; no plan without swaps recomputes less
  int stretches = 1;                 ///< of the step, whose bounds add up to it
  std::int32_t instant = 0;          ///< the op that has just run
  RecomputeCut::Choice choice = {};  ///< known unless nothing must be run again
  int flows = 0;                     ///< maximum flows that were sought
};

/// Asks at the instants where the knapsack bound is largest, in stretches of the step: first everywhere, then more and
/// more closely around the best. About 60 instants; at most a few flows each, most of them given up early.
///
/// Where memory is short in several stretches of the step and not between them (micro-batches), the same is asked of
/// each of the largest stretches by itself, for what is run again before the next one begins; what they prove adds up.
/// `instant` and `choice` remain those of the best single instant. Deterministic.
MinCutPlan min_cut_plan(const RecomputeModel& model, Bytes capacity);

}  // namespace tidepool
