// A linear program in which any part of a buffer can be copied, like a fluid. Its least stall is a bound.
#pragma once

#include <vector>

#include "simulator/solvers/bounds/absences.hpp"
#include "simulator/solvers/bounds/linear_program.hpp"
#include "simulator/solvers/bounds/resource.hpp"

namespace tidepool {

struct FluidQuery {
  Bytes capacity;
  double out_rate = 0, in_rate = 0;  ///< bytes per ns to and from the host
  bool remat = false;                ///< content may be recomputed instead of copied
  bool repeats = false;              ///< for the mean iteration of an endlessly repeated step
  bool whole = false;                ///< the bytes absent at an instant are a sum of whole buffers
};

struct FluidBound {
  bool feasible = true;
  double stall = 0;                        ///< ns: no plan stalls and recomputes for less time
  Resource limited_by = {};                ///< the resource behind most of it: see fluid_bound()
  std::vector<double> copied, recomputed;  ///< by absence: bytes in a best solution; empty if the time ran out;
                                           ///< recomputed: also empty without `remat`
  std::vector<double> waits;               ///< by op: ns lost before it in this solution; if the step is not repeated,
                                           ///< the last entry is for its end; empty likewise
  std::vector<double> prices;  ///< by op: ns that one byte less in memory during it would save; empty likewise
};

/// Every plan that keeps the order of the ops is a solution of this program, so its least value is a bound:
///   y_g      bytes of absence g that are copied out and in; r_g bytes of it that are recomputed; y_g + r_g <= size
///   w_k      time that is lost before op k, by waiting or recomputing
///   o_k i_k  bytes copied out and in during op k; O_k I_k the same during w_k
///   Q_k      bytes that may leave and have not left when op k begins; A_k bytes that are back before they are due
///   Y_k      bytes that are absent during op k. At least Q_k - E_k of them are still being copied, where E_k belong to
///            absences that begin later
///   z_c      bytes of content c that are copied out: at least y_g of each of its absences. An absence adds its bytes
///            beyond those of earlier absences to z_c, and also to E_k until it begins
///   h_b      bytes of a buffer from before the step that begin on the host, if the step is not repeated. They come in
///            before the first op that reads the buffer; no other bytes of it are absent before that op. They need no
///            copy out of the first content: z_c >= y_g - h_b. Of bytes absent at the end, all but h_b come in by then
/// with  Q_k = Q_(k-1) - o_(k-1) + (sum of z_c that may be copied from k on) - O_k,
///       A_k = A_(k-1) + i_(k-1) + I_k - (sum of y_g due at k),
///       load_k - Y_k + max(0, Q_k - E_k) + A_k <= capacity before op k, and likewise after it, with o_k and i_k,
///       where load_k - capacity, if positive and `whole`, is rounded up to the least sum of sizes that may be absent,
///       unless there are more than 32 such sizes,
///       o_k <= Q_k, o_k <= rate * (duration of k), O_k <= rate * w_k, and likewise in.
/// Recomputation takes r_g / size of the producer's time (less if the producer makes more than g), between the start of
/// the absence and its end or the end of the iteration, whichever is earlier. If an absence goes on beyond the
/// iteration, x_g <= r_g of the recomputed bytes are copied out for that part; they add to z_c and come in like y_g.
/// The program does not distinguish bytes: it copies those first that may be copied first.
///
/// The multipliers show the resource behind a time w_k > 0. Its cost of 1 is the sum of the shares of the three rows
/// that contain it (O_k, I_k and recomputation). If the solver ran out of time, all w_k have the same weight.
FluidBound fluid_bound(const Absences& step, const FluidQuery& query, const LinearProgram::Limits& limits = {});

}  // namespace tidepool
