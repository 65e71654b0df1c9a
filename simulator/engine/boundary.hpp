// The state of a run between two iterations, and the cycle in which a run repeats.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {

/// The state in which an iteration begins. Two iterations that begin in equal states can be executed by the same
/// actions, at the same times after their beginning.
struct Boundary {
  /// The location of each initial content: device, host, or under way. Reserved memory. The clocks of all lanes,
  /// counted from the earliest stream; an earlier clock counts as zero, since nothing begins before that stream's
  /// clock.
  std::vector<std::int64_t> state;
  /// Addresses. If only they differ, the same actions may still be possible at other addresses, if the pool agrees.
  std::vector<std::int64_t> places;
  /// Time by which the host's launches and submissions are ahead of the earliest stream. May grow for ever.
  Nanos host_lead;
  /// Whether anything waited for the host in the previous iteration.
  bool host_delayed = false;
};

/// The number of iterations in the cycle of the run, at least 1; 0: none yet. A cycle is found in one of two ways.
/// Either the last state of `boundaries` equals an earlier one, addresses included. Or it equals two earlier ones
/// except for addresses, and the costs of the iterations between these states have occurred twice in a row. A host that
/// is further ahead than before counts as equal if nothing waited for it in between, since nothing will wait for it
/// later either.
/// @param iterations  costs of the iterations between the boundaries; one element fewer than `boundaries`
int cycle_of(std::span<const Boundary> boundaries, std::span<const Totals> iterations);

/// Looks in the last half of `boundaries` for states that equal the last state except for addresses. @return  the
/// number of iterations since the earliest of them; 0: none
int longest_cycle(std::span<const Boundary> boundaries);

/// Sums of times, copied bytes and counts over all of `iterations`.
Totals sum_of(std::span<const Totals> iterations);

/// Mean costs of the last `cycle` of `iterations`. Times, copied bytes and counts are summed over these iterations and
/// divided by `cycle`, rounded to the nearest whole number, halves up. Peaks and the number of actions are those of all
/// iterations; Timeline::totals() never lowers them.
Totals mean_of_last(std::span<const Totals> iterations, int cycle);

/// The number of iterations that a simulation of this run may need, for the estimates of searches. Most runs settle
/// after two or three.
inline int likely_iterations(const RunSpec& spec) {
  return spec.steady ? std::min(spec.iterations, 3) : spec.iterations;
}

/// The sum divided by the number, to the nearest whole number, halves up. Neither is negative.
constexpr std::int64_t rounded_mean(std::int64_t sum, std::int64_t number) { return (2 * sum + number) / (2 * number); }

}  // namespace tidepool
