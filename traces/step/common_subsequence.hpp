// Letters that two strings have in common, in order.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tidepool {

/// Pairs of positions with equal letters, ascending in both strings: a long common subsequence. Strings are cut at the
/// longest ascending chain of letters that occur once in both ("patience diff"); what lies between two cuts is compared
/// by Myers ("An O(ND) difference algorithm and its variations", Algorithmica 1, 1986) if it differs in at most
/// `most_edits` letters, and else has no pair. O((n + edits^2) log n).
std::vector<std::pair<std::uint32_t, std::uint32_t>> common_subsequence(std::span<const std::uint32_t> a,
                                                                        std::span<const std::uint32_t> b,
                                                                        std::size_t most_edits = 2000);

}  // namespace tidepool
