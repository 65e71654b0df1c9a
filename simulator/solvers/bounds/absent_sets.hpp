// Sets of whole buffers that must be absent so that the others fit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/base/quantity.hpp"

namespace tidepool {

/// The least sum of some of these sizes that is at least `excess`. If a table of all sums would take too much work:
/// `excess` rounded up to a multiple of the sizes' greatest common divisor.
/// @param excess     at most the sum of all sizes; if it is not positive, it is the answer
/// @param most_work  limit on the words of 64 sums that are processed; 10^6 take a millisecond
Bytes least_sum(std::span<const Bytes> sizes, Bytes excess, std::int64_t most_work = 1'000'000);

struct AbsentSets {
  bool possible = true;  ///< false: all sizes together are less than the excess
  Bytes least;           ///< least_sum()
  /// All minimal sets of indices whose sizes add up to the excess or more; empty if there are more than 64 of
  /// them.
  std::vector<std::vector<std::uint32_t>> sets;
};

/// @param excess  positive
AbsentSets absent_sets(std::span<const Bytes> sizes, Bytes excess);

}  // namespace tidepool
