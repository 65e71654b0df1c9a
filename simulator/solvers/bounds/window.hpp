// Window bound: the time that a step loses because content is absent at one instant, in closed form.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulator/machine.hpp"
#include "simulator/solvers/bounds/absences.hpp"
#include "simulator/solvers/bounds/recompute_model.hpp"
#include "simulator/solvers/bounds/resource.hpp"

namespace tidepool {

/// The query for a lower bound on the time that any plan loses by copies over two links or by recomputation.
struct WindowQuery {
  Bytes capacity;
  double out_rate = 0, in_rate = 0;  ///< bytes per ns to and from the host
  bool swap = true, remat = false;
  bool repeats = false;  ///< for the mean of many iterations
  bool whole = false;    ///< the bytes absent at an instant are a sum of whole buffers
  /// With `remat`: also counts the inputs of ops that run again, by minimum cuts. Must outlive the search.
  const RecomputeModel* model = nullptr;
};

struct WindowBound {
  bool feasible = true;     ///< false: an op does not fit even when everything is absent that may be absent
  double stall = 0;         ///< ns that ops wait for copies or run again
  std::int64_t at = 0;      ///< the op with the largest cost, or an op that cannot run
  std::size_t windows = 0;  ///< number of windows of ops whose costs add up to `stall`
  LostTime lost = {};       ///< `stall` by resource, before the rounding error is subtracted
};

/// The largest mean rate, in bytes per ns, at which a link can move these absences or parts of them, latency
/// included.
double fastest(const Link& link, std::span<const Absence> absences);
/// The same for all tiers of a machine together, out of the device and into it.
double fastest_out(const Machine& machine, std::span<const Absence> absences);
double fastest_in(const Machine& machine, std::span<const Absence> absences);

/// While op p runs, E = load - capacity bytes are absent. Let t_p be the time at which p begins. Each of these bytes
/// was copied out before t_p and after its content was complete. All of them but those that were complete before time a
/// must leave within [a, t_p]. That takes (E - c) / rate, where c are the bytes complete before a, and lengthens this
/// window if the window is too short. Likewise content that is due at time b or earlier must come back within [t_p, b].
/// As a function of E both costs are max(0, E / rate - m), where m = min over a of ((t_p - a) + c / rate) does not
/// depend on E.
///
/// In a step that is not repeated, content from before the step may have begun on the host. It then needs no copy out
/// to be absent during p; but if it was read before p, it was copied in before that read. If x of the E bytes began on
/// the host and were read before p, x bytes came in and E - x bytes went out, each in its own window. At the best x
/// both links have moved E bytes together, which gives a third expression of the same form. `whole` rounds E up to the
/// least sum of sizes that may be absent, if these are few.
///
/// Content that is recomputed need not be copied. The producers of z such bytes run for at least C(z), a knapsack that
/// takes the producers with the least time per byte first. The bound of p is the wait before p, plus the larger of C
/// and the wait after p, at the best z. Bounds of windows that do not overlap add up.
///
/// With a model, at most 33 instants are also bounded with the curve of RerunCurve as C(z): inputs of ops that run
/// again are resident, copied in, or made again. Content that only these reruns still read may then be resident or on
/// the host as well. If it is on the host, it was copied out after it was made, and comes in before the last rerun.
/// Reruns that bring back content that the program needs take place before the next use of this content, so the last of
/// these uses ends the window.
///
/// The arithmetic is in doubles; one ns and a millionth are subtracted for the rounding error. O(ops + absences) for
/// each of at most 128 instants, the last 64 of them around the most expensive one; fewer instants with more than
/// 5 * 10^4 absences. With recomputation, O(ops + absences log absences) for each instant.
WindowBound window_bound(const Absences& step, const WindowQuery& query);

}  // namespace tidepool
