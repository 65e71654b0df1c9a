// The state of a run between two iterations, and the cycle that a run has settled into.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {

/// The state in which an iteration begins. Two iterations that begin in equal states can be carried out in the same
/// way, at the same times after their beginning.
struct Boundary {
  /// Where the content is that existed before the iteration: on the device, on the host, on its way; memory that is
  /// reserved; and the clocks of all lanes since the earliest stream. A clock before that counts as that: nothing
  /// begins earlier.
  std::vector<std::int64_t> state;
  /// Addresses. Where they differ, an iteration may still be carried out in the same way, elsewhere, if the pool does.
  std::vector<std::int64_t> places;
  /// By how much the host is ahead of the earliest stream with what it launches and submits. It may grow for ever.
  Nanos host_lead;
  /// Whether something waited for the host in the iteration before.
  bool host_delayed = false;
};

/// The number of iterations, at least 1, after which the run repeats what it did; 0: not yet. The last state of
/// `boundaries` has come back after so many, with the same addresses, or costs of so many iterations have been the same
/// twice. A host that is further ahead than before is in the same state if nothing waited for it in between, since
/// nothing will.
/// @param iterations  costs of those between the boundaries, one fewer
int cycle_of(std::span<const Boundary> boundaries, std::span<const Totals> iterations);

/// The largest number of iterations in the last half after which the last state has come back, whatever the addresses;
/// 0: none.
int longest_cycle(std::span<const Boundary> boundaries);

/// The same costs with times, copied bytes and counts of all of `iterations` added up.
Totals sum_of(std::span<const Totals> iterations);

/// Mean costs of the last `cycle` of `iterations`: times, bytes copied and counts are the sums over those divided by
/// their number, rounded to the nearest whole number, halves up. Peaks and the number of actions are those of all
/// iterations; Timeline::totals() never lowers them.
Totals mean_of_last(std::span<const Totals> iterations, int cycle);

/// How many iterations a simulation of this run may come to, for searches that say what they may cost: most runs settle
/// after two or three.
inline int likely_iterations(const RunSpec& spec) {
  return spec.steady ? std::min(spec.iterations, 3) : spec.iterations;
}

/// The sum divided by the number, to the nearest whole number, halves up. Neither is negative.
constexpr std::int64_t rounded_mean(std::int64_t sum, std::int64_t number) { return (2 * sum + number) / (2 * number); }

}  // namespace tidepool
