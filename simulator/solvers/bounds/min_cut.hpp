// A bound on recomputation: the minimum cut (recompute_cut.hpp) at the best instant of the step.
#pragma once

#include "simulator/solvers/bounds/recompute_cut.hpp"

namespace tidepool {

/// A bound on recomputation, with the choice behind it. A plan that keeps the versions choice.resident from `instant`
/// on, and runs the ops choice.again when it needs their outputs, is as close to the bound as memory after the instant
/// allows.
struct MinCutPlan {
  bool feasible = true;              ///< false: no plan exists at all
  std::int64_t bound = 0;            ///< ns: no plan without swaps recomputes less
  int stretches = 1;                 ///< number of windows of ops whose bounds add up to `bound`
  std::int32_t instant = 0;          ///< the op that has just run
  RecomputeCut::Choice choice = {};  ///< known if a plan exists and must run ops again
  int flows = 0;                     ///< number of maximum flows that were computed: with a price, or to show that no
                                     ///< plan exists; 0 if what cannot be recomputed alone does not fit
};

/// Computes the cut at instants with a large knapsack bound: first over the whole step, then more closely around the
/// best. It tries about 60 instants, with a few flows each, and gives most of them up early.
///
/// Memory may be short in several windows of the step and not between them (micro-batches). Then each of the largest
/// windows is searched by itself. Its bound only counts recomputation before the next window begins, so these bounds
/// add up. `instant` and `choice` are still those of the best single instant. Deterministic.
MinCutPlan min_cut_plan(const RecomputeModel& model, Bytes capacity);

}  // namespace tidepool
