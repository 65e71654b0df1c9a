// Selection of gaps by the price of their copies, for links that are too busy for all copies.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/realised_step.hpp"

namespace tidepool {

/// The order of gaps with equal prices: the longest first, or the one with the earliest release first.
enum class AmongLike : std::uint8_t { kLongest, kFirstReleased };

/// The price of a copy that ops wait for: 1 per byte.
inline constexpr double kWaitedFor = 1;

/// The price of each gap; a selection prefers small prices. A gap costs kWaitedFor for each direction in which ops wait
/// for its copy, and next to nothing otherwise. The swap-out is free if the host has the content already. Content that
/// comes from the previous iteration and changes in each (Gap::renewed) is swapped out after its last change there;
/// then waits for that copy count. `step` says for which copies ops wait.
std::vector<double> copy_prices(const RealisedStep& step, const std::vector<Gap>& gaps, const Machine& machine,
                                AmongLike like);

/// Extends a selection by gaps that cross the boundary between two iterations. If ops waited for the swap-out of a
/// selected gap, the crossing gap of the same content is added: the content then begins the step on the host and need
/// not be swapped out. A crossing gap is added only if its content comes back in time.
std::vector<std::uint32_t> with_begun_on_host(const RealisedStep& step, const std::vector<Gap>& gaps,
                                              const Machine& machine, std::vector<std::uint32_t> selected);

}  // namespace tidepool
