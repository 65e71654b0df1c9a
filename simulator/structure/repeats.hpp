// Finding what stands several times in a row in a string.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidepool {

/// A part [first, last) of a string of at least two periods in which everything equals what stands a period later. It
/// can be made longer at neither end, and its period is the shortest that it has.
struct PeriodicPart {
  std::uint32_t first = 0, last = 0, period = 0;
  bool operator==(const PeriodicPart&) const = default;
};

/// All of them, in order, fewer than there are letters: the runs of the string. O(n log n).
///
/// Every run contains a Lyndon root, which is the longest Lyndon word at its place for one of the two orders of
/// letters (Bannai, I, Inenaga, Nakashima, Takeda and Tsuruta, "The runs theorem", SIAM J. Comput. 46, 2017): it is
/// enough to try to extend those 2 n words. How far two places agree is found by bisection over hashes modulo 2^61 - 1:
/// runs are certain only up to a collision, of which the chance is below n^2 log n / 2^61.
std::vector<PeriodicPart> periodic_parts(std::span<const std::uint32_t> letters);

}  // namespace tidepool
