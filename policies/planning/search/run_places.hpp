// Addresses for what a run that only counted bytes has placed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/planning/search/counted_pool.hpp"
#include "simulator/options.hpp"

namespace tidepool {

/// The granule of a pool that is one arena in which it does not matter who says where things go; none: it does.
std::optional<Bytes> granule_of(const Spec& pool);

/// Offsets by request, multiples of the granule, such that nothing that lives at the same time overlaps, and the height
/// that this takes.
struct FoundPlaces {
  std::vector<Bytes> offsets;
  Bytes height;
};

/// Where the sum of bytes fits the capacity, a search of some effort for places within it (as of minimise()); if there
/// is no effort, or the sum does not fit, one-pass orders. They may exceed the capacity.
FoundPlaces find_places(const PlaceLog& log, Bytes granule, Bytes capacity, double effort);

/// What lies as in an earlier run as far as possible: each life in the order of where the same version lay then, what
/// is new last, as low as it can. Runs that differ little have heights that differ little, and one pass is quick.
/// @param offsets  by life of the earlier run
FoundPlaces find_like_places(const PlaceLog& log, const PlaceLog& earlier, const std::vector<Bytes>& offsets,
                             Bytes granule);

}  // namespace tidepool
