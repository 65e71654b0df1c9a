// Improving a plan that is to have places: by the height that these take, too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/planning/search/mixed_plan.hpp"
#include "policies/planning/search/placement.hpp"

namespace tidepool {

/// Where improve_placed() begins, and where it ends.
struct PlacedStart {
  GapPlan plan;
  Bytes limit;         ///< of the sum of bytes
  std::int64_t tries;  ///< runs, fewer where packing them takes long
  std::uint64_t seed;
  std::vector<Action> always = {};  ///< what drafts do besides, see draft_of()
};

/// Changes a plan as improve() does, or the limit up to which its run counts bytes; but each change is judged by its
/// time and by how far its packed places exceed the capacity, see with_excess(). Of the gaps, those are tried first
/// that last while something lies above the capacity. What has places and takes least time; nothing if that is no
/// better than `best`. Deterministic for a seed.
/// @param costs  as of Reruns::costs()
std::optional<Placer::Placed> improve_placed(Placer& placer, const RunSpec& spec, const Planning& planning,
                                             const std::vector<Nanos>& costs, const PlacedStart& start, Result best);

}  // namespace tidepool
