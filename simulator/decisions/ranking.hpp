// Ranking of the candidates that a policy chose among when it was asked for room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "traces/ids.hpp"

namespace tidepool {

/// Versions that an answer might have evicted.
struct RankedVersions {
  std::vector<VersionId> versions;  ///< one, or those of a window of addresses
  double score = 0;                 ///< as the policy compared it
  bool at_least = false;            ///< the policy knew only that the score is no less
};

/// Candidates of an answer, in the order in which the policy would evict them.
struct Ranking {
  static constexpr std::size_t kMost = 5;  ///< that are named

  std::string score;                  ///< meaning and unit of the scores, as in "last use, ns"; "": there are none
  std::vector<RankedVersions> first;  ///< the first ones, kMost at most
  std::size_t candidates = 0;         ///< all of them; 0: the policy does not tell
};

/// The ranking of all candidates. `before` is the policy's order. O(n).
/// @param ranked  keys by which they are compared, and candidates
template <class Key, class Before>
Ranking rank(std::string score, std::vector<std::pair<Key, RankedVersions>> ranked, Before before) {
  Ranking ranking{std::move(score), {}, ranked.size()};
  const auto named = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(ranked.size(), Ranking::kMost));
  std::partial_sort(ranked.begin(), named, ranked.end(),
                    [&](const auto& a, const auto& b) { return before(a.first, b.first); });
  for (auto one = ranked.begin(); one != named; ++one) ranking.first.push_back(std::move(one->second));
  return ranking;
}

}  // namespace tidepool
