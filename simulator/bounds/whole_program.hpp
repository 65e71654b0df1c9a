// Whole buffers by op: a program whose least loss of time no plan of a small step can beat.
#pragma once

#include <cstdint>

#include "simulator/bounds/resource.hpp"
#include "simulator/bounds/step_contents.hpp"
#include "simulator/machine/machine.hpp"

namespace tidepool {

struct WholeQuery {
  Bytes capacity;
  bool swap = true, remat = false;
  bool repeats = false;  ///< the step is repeated for ever: the mean of an iteration
  int most_nodes = 0;    ///< of branch and bound; 0: the linear program alone
};

struct WholeBound {
  bool feasible = true;  ///< false: more than all that may be absent at once would have to be
  double stall = 0;      ///< ns: no plan waits and runs again for less
  LostTime lost;         ///< what the program loses it to
};

/// Every plan that keeps the order of the ops is a solution of this program, so that its least value is a bound.
/// Instants are the beginning and the end of every op, and the end of the step. Segment t is the time in front of
/// instant t: an op, or a slot between two ops, in which time may be lost. By content c, op o, instant or segment t:
///   P_ct  1: c is in memory at the instant, complete or under way
///   I_ct  1: a copy from the host begins in the segment
///   O_ct  1: the host has c at the end of the segment, and had it not before
///   R_ot  1: o runs again in the slot
///   h_c   1: c existed before the step and began on the host
///   w_t   time that is lost in the slot: waiting, or running again
/// with these rows:
///   - P_ct <= P_c(t-1) + I_ct + R_ot, where o makes c; and the right side is at least 1 in front of an op that reads
///   c,
///     and no less than R_o't for an op o' that reads c;
///   - P_ct + (h_c + O_c0 + ... + O_ct) + (R_o of the slots from there to the next use) >= 1 where c is needed later;
///   - what is absent at t is one of the least sets of contents without which the others fit beside the working set, or
///     more: 1 - P_ct is no less than the weights of such sets with c, which add up to 1. That is all that can be said
///     of whole buffers at one instant. Where there are too many sets, the bytes of what is absent are no less than the
///     least sum of sizes that makes room;
///   - copies to the host that can begin in segment r or later, and are over by the end of segment t, take no longer
///     than these segments; likewise those from the host that begin in segment r or later and are needed behind segment
///     t. For every r and t;
///   - w_t is no less than the times of all R_ot, and what stays through a slot fits beside the working set of any op
///     that runs again in it.
/// In a repeated step segments go round, and rows reach over two iterations. Variables are then means over all
/// iterations, for which all of this holds as well.
///
/// Left out, so that the optimum may be above: addresses; that one copy does not interrupt another; that copies both
/// ways disturb each other; what the host takes to launch, to pin and to submit.
WholeBound whole_bound(const StepContents& step, const Machine& machine, const WholeQuery& query);

}  // namespace tidepool
