// Search for the least height, with a proof of how far the result can be from it.
#pragma once

#include "simulator/planner.hpp"

namespace tidepool {

/// With this effort, the search takes seconds, and its results are lower than the published ones on all published
/// instances that were tried.
inline constexpr int kDefaultEffort = 250;

/// A first layout, and a first lower bound, height_bound(), come from one pass each. Then passes in many orders look
/// for lower layouts (OrderSearch). In instances of few items, a complete search from the ground up (ExactSearch), with
/// a different rule in each run, looks for layouts of heights between the two: many short runs, first at the height of
/// the lower bound. A run that neither finds a layout nor is cut short proves that no layout of its height exists. If
/// the first part of the search does not end it, two more searches of small instances follow: one that tries the items
/// in the order of the best layout with random changes, and one in a window of time that grows (WindowSearch).
///
/// In instances of many items, the work goes in equal parts into more passes, into a search that first places the items
/// of large areas alone (CoarseSearch), and into a local search that repairs the best layout (EjectionSearch).
///
/// The search can be stopped at any time: the best layout so far is valid. What it does next depends on its work so
/// far, and on no limit, so more effort or time never gives a higher layout. If the caller says which height is enough,
/// the search looks for no lower layout.
/// @param effort  work after which the search ends if there is no time limit, beside the best orders of one pass. The
///                unit is 10^6 sections looked at, and 25 for each item
Layout minimise(const Instance& instance, const PackingLimits& limits, double effort);

}  // namespace tidepool
