// Addresses for the lifetimes of a run that only counted bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/planning/search/counted_pool.hpp"
#include "simulator/options.hpp"

namespace tidepool {

/// The granule of a pool that is one arena and may be replaced by planned places; none for other pools.
std::optional<Bytes> granule_of(const Spec& pool);

/// Offsets by request, with their height. They are multiples of the granule; lives at the same time do not overlap. If
/// the log has a cycle, lives that end before it have no offset.
struct FoundPlaces {
  std::vector<Bytes> offsets;
  Bytes height;
};

/// Places for the lives of a log. If the sum of bytes fits the capacity, minimise() searches with the given effort for
/// places within it. Without effort, or if the sum does not fit, one-pass orders are used; these may exceed the
/// capacity.
FoundPlaces find_places(const PlaceLog& log, Bytes granule, Bytes capacity, double effort);

/// Places as similar as possible to those of an earlier run: lives are placed in the order of their version's earlier
/// offset, new versions last, each as low as possible. One pass; small changes of a run change the height little.
/// @param offsets  by life of the earlier run
FoundPlaces find_like_places(const PlaceLog& log, const PlaceLog& earlier, const std::vector<Bytes>& offsets,
                             Bytes granule);

}  // namespace tidepool
