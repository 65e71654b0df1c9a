// Plans that copy and recompute: gaps selected by prices of the links.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/gaps/trials.hpp"
#include "policies/planning/search/mixed_plan.hpp"

namespace tidepool {

/// Tries prices of the links (see select_by_price), first over the whole range, then around the best; then changes the
/// best plan (see improve_by_estimate).
/// @param costs    by gap, from Reruns::costs()
/// @param largest  bytes of the largest gap
void try_mixed(Trials& trials, const Planning& planning, const std::vector<Nanos>& costs, Bytes largest,
               std::uint64_t seed);

}  // namespace tidepool
