// A program that decides on whole buffers, op by op; its least lost time is a bound for plans of a small step.
#pragma once

#include <cstdint>

#include "simulator/machine.hpp"
#include "simulator/solvers/bounds/resource.hpp"
#include "simulator/solvers/bounds/step_contents.hpp"

namespace tidepool {

struct WholeQuery {
  Bytes capacity;
  bool swap = true, remat = false;
  bool repeats = false;  ///< for the mean iteration of an endlessly repeated step
  int most_nodes = 0;    ///< of branch and bound; 0: the linear program alone
};

struct WholeBound {
  bool feasible = true;  ///< false: the step does not fit even when everything is absent that may be absent
  double stall = 0;      ///< ns: no plan stalls and recomputes for less, within the tolerances of branch and bound
  LostTime lost;         ///< of the linear program alone: its sum is less than `stall` if branch and bound adds to it
};

/// Every plan that keeps the order of the ops is a solution of this program, so its least value is a bound.
/// Instants are the beginning and the end of every op, and the end of the step. Segment t is the time before instant t:
/// an op, or a slot between two ops, in which time may be lost. By content c, op o, instant or segment t:
///   P_ct  1: c is in memory at the instant, complete or under way
///   I_ct  1: a copy from the host begins in the segment
///   O_ct  1: the host has c at the end of the segment, and not before
///   R_ot  1: o runs again in the slot
///   h_c   1: c existed before the step and began on the host
///   w_t   time that is lost in the slot, by waiting or running ops again
/// with these rows:
///   - P_ct <= P_c(t-1) + I_ct + R_ot, where o makes c. The right side is at least 1 before an op that reads c,
///     and at least R_o't for an op o' that reads c;
///   - P_ct + (h_c + O_c0 + ... + O_ct) + (R_o of the slots from there to the next use) >= 1 if c is needed later;
///   - the contents absent at t include one of the minimal sets without which the others fit beside the working set:
///     1 - P_ct is at least the sum of the weights of such sets with c, where all weights add up to 1. No row about a
///     single instant is stronger. If there are too many sets, the absent bytes are at least the least sum of sizes
///     that makes enough room;
///   - copies to the host that can begin in segment r or later, and end by the end of segment t, take no longer than
///     these segments. Likewise copies from the host that begin in segment r or later and must end by the end of
///     segment t. For every r and t;
///   - w_t is at least the time of all R_ot, and contents that stay through a slot fit beside the working set of any
///     op that runs again in it.
/// In a repeated step segments wrap around, and rows extend over two iterations. Variables are then means over all
/// iterations, for which all of this holds as well.
///
/// Left out, so that even the best plan may take longer than the bound: addresses; that one copy does not interrupt
/// another; that copies in opposite directions slow each other down; the host's time to launch, pin and submit.
/// @param step  step_contents() of the trace, with `repeats` and `remat` as in the query
WholeBound whole_bound(const StepContents& step, const Machine& machine, const WholeQuery& query);

}  // namespace tidepool
