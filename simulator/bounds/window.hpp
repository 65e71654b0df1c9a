// Window bound: the time that content costs which must be away at one instant, in closed form.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulator/bounds/absences.hpp"
#include "simulator/bounds/resource.hpp"
#include "simulator/machine/machine.hpp"

namespace tidepool {

/// No step that moves content over two links of these rates, or runs ops again, waits less.
struct WindowQuery {
  Bytes capacity;
  double out_rate = 0, in_rate = 0;  ///< bytes per ns to and from the host
  bool swap = true, remat = false;
  bool repeats = false;  ///< bounds the mean of many iterations
  bool whole = false;    ///< what is away at an instant is a sum of whole buffers
};

struct WindowBound {
  bool feasible = true;     ///< false: more than everything that may be away has to be
  double stall = 0;         ///< ns that ops wait for copies or are run again
  std::int64_t at = 0;      ///< the op that costs most of all, or cannot run
  std::size_t windows = 0;  ///< stretches of ops whose costs add up to `stall`
  LostTime lost = {};       ///< `stall`, before the rounding is taken off
};

/// The largest rate at which a link moves any of these absences or a piece of one, latency included: no link is faster
/// than this on the average. In bytes per ns.
double fastest(const Link& link, std::span<const Absence> absences);
/// The same for all tiers of a machine together, from the device and to it.
double fastest_out(const Machine& machine, std::span<const Absence> absences);
double fastest_in(const Machine& machine, std::span<const Absence> absences);

/// While op p runs, E = load - capacity bytes are away. Those that left were copied before it, from when their content
/// was complete on: of the content that is complete only at time a or later, all but what was complete before must
/// leave within [a, t_p], which takes (E - bytes complete before a) / rate and lengthens that stretch by whatever is
/// missing. Coming back likewise: what is due at time b or earlier must come within [t_p, b]. As a function of E both
/// are max(0, E / rate - m), where m = min over a of ((t_p - a) + bytes before a / rate) does not depend on E.
///
/// Of a step that is not repeated, content from before it that was read before p is on the host only if it began there,
/// and then it came in before that use. Whatever part x of it that was, x bytes came in and E - x went out, each within
/// its time: with the best x, both links have moved E bytes together, which is a third expression of the same form.
/// `whole` rounds E up to the least sum of sizes that may be away, where those are few.
///
/// Content that is computed again need not be copied: for z bytes of it the ops that made them run for at least C(z),
/// a knapsack by time per byte. Ours: the sum of the waits before p and the larger of C and the waits behind p, at the
/// best z. Bounds of stretches that do not overlap add up.
///
/// Exact arithmetic is replaced by doubles; one ns and a millionth part are taken off for it. O(ops + absences) for
/// each of at most 128 instants, the last 64 of them around the one that costs most; fewer where there are more than
/// 10^5 absences. With recomputation O(absences log) each.
WindowBound window_bound(const Absences& step, const WindowQuery& query);

}  // namespace tidepool
