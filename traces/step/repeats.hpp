// Search for the parts of a string that repeat several times in a row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidepool {

/// A part [first, last) of a string, at least two periods long, in which each letter equals the one a period later. The
/// part cannot be extended at either end, and no shorter period fits.
struct PeriodicPart {
  std::uint32_t first = 0, last = 0, period = 0;
  bool operator==(const PeriodicPart&) const = default;
};

/// All periodic parts (the runs of the string), in order; there are fewer than letters. O(n log n).
///
/// Every run contains a Lyndon root, which is the longest Lyndon word at its position for one of the two orders of
/// letters (Bannai, I, Inenaga, Nakashima, Takeda and Tsuruta, "The runs theorem", SIAM J. Comput. 46, 2017). So it is
/// enough to try to extend those 2 n words. The length over which two positions agree is found by bisection over hashes
/// modulo 2^61 - 1. A collision of hashes gives a wrong run; its probability is below n^2 log n / 2^61.
std::vector<PeriodicPart> periodic_parts(std::span<const std::uint32_t> letters);

}  // namespace tidepool
