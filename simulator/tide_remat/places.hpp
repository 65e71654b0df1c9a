// Addresses for what a run that only counted bytes has placed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/tide_remat/counted_pool.hpp"

namespace tidepool {

/// The granule of a pool that is one arena in which it does not matter who says where things go; none: it does.
std::optional<Bytes> granule_of(const std::string& pool);

/// Offsets by request, multiples of the granule, such that nothing that lives at the same time overlaps, and the height
/// that this takes.
struct FoundPlaces {
  std::vector<Bytes> offsets;
  Bytes height;
};

/// One-pass orders, and where none of them fits the capacity but the sum of bytes does, a search of some effort (as of
/// minimise()). The lowest; it may exceed the capacity.
FoundPlaces find_places(const PlaceLog& log, Bytes granule, Bytes capacity, double effort);

}  // namespace tidepool
