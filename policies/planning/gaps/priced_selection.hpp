// Selection of gaps by the price of their copies, for links that are too busy for all copies.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/realised_step.hpp"

namespace tidepool {

/// The order of gaps of the same price: the longest first, or the one with the earliest release first.
enum class AmongLike : std::uint8_t { kLongest, kFirstReleased };

/// The price of a copy that ops wait for: the time of a byte.
inline constexpr double kWaitedFor = 1;

/// By gap: its price; a selection prefers small ones. A gap costs kWaitedFor for each direction in which ops wait for
/// its copy, and next to nothing otherwise. The swap-out is free if the host has the content already, or if the content
/// can be copied after its last change in the previous iteration while nobody waits. `step` has the waits.
std::vector<double> copy_prices(const RealisedStep& step, const std::vector<Gap>& gaps, const Machine& machine,
                                AmongLike like);

/// The selection, extended: if ops waited for the swap-out of a selected gap, the gap in which its content begins on
/// the host is added, so that the swap-out is not needed. Only if that content comes back in time.
std::vector<std::uint32_t> with_begun_on_host(const RealisedStep& step, const std::vector<Gap>& gaps,
                                              const Machine& machine, std::vector<std::uint32_t> selected);

}  // namespace tidepool
