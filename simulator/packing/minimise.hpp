// The least height, or the best found, and what is known about it.
#pragma once

#include <cstdint>

#include "simulator/packing/planner.hpp"

namespace tidepool {

/// Enough for every published instance at hand to get below the heights known before, in seconds.
inline constexpr int kDefaultEffort = 250;

/// One-pass orders give a first layout, bounds a first certificate; between the two a complete search from the ground
/// up (ExactSearch) looks for layouts of lower heights under changing rules: in many short runs, the lower bound's
/// height first, or where the instance is large in few long ones, somewhat above the bound first. A run that ends
/// without a layout and without being cut short proves that there is none of its height. It is anytime: the best layout
/// so far is valid. A height that is enough is what is looked for where the bound is lower.
/// @param effort  without a time limit: where to stop, in millions of sections looked at; the millions are larger in
///                large instances, by a quarter of the sum of sections that the items live in
Layout minimise(const Instance& instance, const PackingLimits& limits, double effort);

}  // namespace tidepool
