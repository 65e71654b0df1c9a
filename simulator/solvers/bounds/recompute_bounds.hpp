// Bounds on recomputation: at each instant, some of the content with later uses does not fit (a knapsack); and the
// minimum cut (recompute_cut.hpp) at the best instant of the step.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/solvers/bounds/recompute_cut.hpp"
#include "simulator/solvers/bounds/recompute_model.hpp"

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
