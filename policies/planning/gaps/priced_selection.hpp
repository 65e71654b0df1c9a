// Selection of gaps where links are too busy for all copies: each copy has a price.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/gap.hpp"
#include "policies/planning/gaps/realised_step.hpp"

namespace tidepool {

/// Of gaps of the same price, which is picked first: the one that lasts longest, or the one that is released first.
enum class AmongLike : std::uint8_t { kLongest, kFirstReleased };

/// The price of a copy that ops wait for: the time of a byte.
inline constexpr double kWaitedFor = 1;

/// By gap: in which order a selection prefers it, small numbers first. A copy that ops wait for costs kWaitedFor, or
/// twice that if both ways, others next to nothing: content that the host has, or that can be copied after it was
/// renewed, in the iteration before, while nobody waits, leaves for free. `step` says where ops waited.
std::vector<double> copy_prices(const RealisedStep& step, const std::vector<Gap>& gaps, const Machine& machine,
                                AmongLike like);

/// What is selected, and what lets it leave without a copy that ops wait for: content from before the step begins on
/// the host, for a gap that crosses the boundary, where it comes back in time.
std::vector<std::uint32_t> with_begun_on_host(const RealisedStep& step, const std::vector<Gap>& gaps,
                                              const Machine& machine, std::vector<std::uint32_t> selected);

}  // namespace tidepool
