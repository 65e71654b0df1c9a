// Copies as a fluid: a linear program whose least stall no plan can beat.
#pragma once

#include <vector>

#include "simulator/bounds/absences.hpp"
#include "simulator/bounds/linear_program.hpp"
#include "simulator/bounds/resource.hpp"

namespace tidepool {

struct FluidQuery {
  Bytes capacity;
  double out_rate = 0, in_rate = 0;  ///< bytes per ns to and from the host
  bool remat = false;                ///< content may be computed again instead
  bool repeats = false;              ///< the step is repeated for ever: the mean of an iteration
  bool whole = false;                ///< what is absent at an instant is a sum of whole buffers
};

struct FluidBound {
  bool feasible = true;
  double stall = 0;                        ///< ns: no plan waits and computes again for less
  Resource limited_by = {};                ///< what most of it is lost to: see fluid_bound()
  std::vector<double> copied, recomputed;  ///< by absence: its bytes in a best solution; empty if there was no time
};

/// Every plan that keeps the order of the ops is a solution of this program, so that its least value is a bound:
///   y_g      bytes of absence g that are copied out and in; r_g those that are computed again; y_g + r_g <= size
///   w_k      time that is lost before op k: waiting, or computing again
///   o_k i_k  bytes copied out and in during op k; O_k I_k the same during w_k
///   Q_k      bytes that may be copied out by op k and are not yet; A_k those that have come back before they are due
///   Y_k      bytes that are away during op k. At least Q_k - E_k of them are still being copied, where E_k belong to
///            absences that begin later
///   z_c      bytes of content c that are copied out: no less than y_g of any of its absences, each of which adds to
///            it what it has more than those before it, and to E_k until it begins
///   h_b      bytes of a buffer from before the step that begin on the host, if the step is not repeated: they come in
///            until the first op that reads it, which is all that may be away before that; its first content needs no
///            copy of them, z_c >= y_g - h_b; and of what is away at the end all but h_b comes in before that
/// with  Q_k = Q_(k-1) - o_(k-1) + (sum of z_c that may be copied from k on) - O_k,
///       A_k = A_(k-1) + i_(k-1) + I_k - (sum of y_g due at k),
///       load_k - Y_k + max(0, Q_k - E_k) + A_k <= capacity before op k, and likewise behind it, with o_k and i_k,
///       where load_k - capacity, if positive and `whole`, is rounded up to the least sum of sizes that may be away,
///       o_k <= Q_k, o_k <= rate * (duration of k), O_k <= rate * w_k, and likewise in.
/// Computing again takes r_g / size of the producer's time, or less where it makes more than g, between the beginning
/// of the absence and its end, or that of the iteration: where an absence goes on beyond it, x_g <= r_g of what is
/// computed again is copied out for that part, which adds to z_c and comes in like y_g. Which bytes are which is
/// forgotten: first come, first served.
///
/// What a time w_k > 0 is lost to, the multipliers say: its column costs 1, which those of the three rows that it is in
/// (O_k, I_k and computing again) make up between them. Where there was no time for a solution, all w_k count alike.
FluidBound fluid_bound(const Absences& step, const FluidQuery& query, const LinearProgram::Limits& limits = {});

}  // namespace tidepool
