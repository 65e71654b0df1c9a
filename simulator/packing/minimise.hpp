// The least height, or the best found, and what is known about it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "simulator/planner.hpp"

namespace tidepool {

/// Enough for every published instance at hand to get below the heights known before, in seconds.
inline constexpr int kDefaultEffort = 250;

/// One-pass orders give a first layout, bounds a first certificate; between the two a complete search from the ground
/// up (ExactSearch) looks for layouts of lower heights under changing rules: in many short runs, the lower bound's
/// height first, or where the instance is large in few long ones, somewhat above the bound first. A run that ends
/// without a layout and without being cut short proves that there is none of its height. Where there are many items,
/// half of the work, in large instances three quarters, goes into a search for those of large areas alone
/// (CoarseSearch) and into a local search that repairs the best layout (EjectionSearch). Where an eighth of the search
/// has not settled the height, other planners are asked, and it goes on below the lowest layout of all. It can be
/// stopped at any time: the best layout so far is valid. Where a height is given as enough, nothing lower is looked
/// for.
/// @param effort  without a time limit: where to stop, in millions of sections looked at; the millions are larger in
///                large instances, by a quarter of the sum of sections that the items live in
/// @param others  planners whose layouts the answer is never higher than, unless the time is up before all have been
///                asked; of a time limit each gets a quarter at most
Layout minimise(const Instance& instance, const PackingLimits& limits, double effort,
                std::span<const std::unique_ptr<Planner>> others = {});

}  // namespace tidepool
