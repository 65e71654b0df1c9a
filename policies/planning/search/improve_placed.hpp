// Improvement of a plan with places, which also takes their height into account.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/planning/search/mixed_plan.hpp"
#include "policies/planning/search/placement.hpp"

namespace tidepool {

/// The start of improve_placed(), with its limits.
struct PlacedStart {
  GapPlan plan;
  Bytes limit;         ///< of the sum of bytes
  std::int64_t tries;  ///< number of changes; fewer if packing takes long
  std::uint64_t seed;
  std::vector<Action> always = {};  ///< further actions of all drafts, see draft_of()
};

/// Changes a plan like improve(), or changes the limit of its run's sum of bytes. Each change is judged by its time and
/// by the excess of its packed places over the capacity, see with_excess(). Gaps during which a place lies above the
/// capacity are preferred. @return  the fastest plan that has places; none if it is not better than `best`.
/// Deterministic for a seed.
/// @param costs  as in Reruns::costs()
std::optional<Placer::Placed> improve_placed(Placer& placer, const RunSpec& spec, const Planning& planning,
                                             const std::vector<Nanos>& costs, const PlacedStart& start, Result best);

}  // namespace tidepool
