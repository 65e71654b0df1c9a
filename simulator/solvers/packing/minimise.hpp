// Search for the least height, with a proof of how far the result can be from it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "simulator/planner.hpp"

namespace tidepool {

/// With this effort, the search takes seconds, and its results are lower than the published ones on all published
/// instances that were tried.
inline constexpr int kDefaultEffort = 250;

/// One-pass orders give a first layout, and height_bound() a first lower bound. A complete search from the ground up
/// (ExactSearch), with a different rule in each run, then looks for layouts of heights between the two. Small instances
/// get many short runs, first at the height of the lower bound. Large ones get a few long runs, first somewhat above
/// the bound. A run that neither finds a layout nor is cut short proves that no layout of its height exists.
///
/// If the first eighth of the search does not end it, instances of few items get two more searches: one that tries the
/// items in the order of the best layout with random changes, and one in a window of time that grows (WindowSearch).
///
/// If there are many items, half of the work (three quarters in large instances) goes into a search that first places
/// the items of large areas alone (CoarseSearch) and into a local search that repairs the best layout
/// (EjectionSearch). If the first eighth of the search does not find the least height, other planners run, and the
/// search goes on below the lowest layout of all. The search can be stopped at any time: the best layout so far is
/// valid. If the caller says which height is enough, the search looks for no lower layout.
/// @param effort  work after which the search ends if there is no time limit. The unit is 10^6 sections looked at, plus
///                a quarter of the pairs of an item and a section in which it lives
/// @param others  other planners: the answer is never higher than one of their layouts, unless the time is over or the
///                height is enough before all have run; each gets at most a quarter of a time limit
Layout minimise(const Instance& instance, const PackingLimits& limits, double effort,
                std::span<const std::unique_ptr<Planner>> others = {});

}  // namespace tidepool
