// Ranking of the candidates for eviction that a policy chose among on a shortage, and the interface of policies that
// explain their decisions so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "simulator/policy.hpp"
#include "traces/ids.hpp"

namespace tidepool {

/// A candidate: one or more versions that are evicted together.
struct RankedVersions {
  std::vector<VersionId> versions;  ///< one, or those of an address range
  double score = 0;                 ///< the value that the policy compared
  bool at_least = false;            ///< whether `score` is only a lower bound
};

/// Candidates of an answer, in the order in which the policy would evict them.
struct Ranking {
  static constexpr std::size_t kMost = 5;  ///< candidates that are listed

  std::string score;                  ///< meaning and unit of the scores, such as "last use, ns"; "": no scores
  std::vector<RankedVersions> first;  ///< the first candidates, at most kMost
  std::size_t candidates = 0;         ///< number of all candidates; 0: the policy does not explain itself
};

/// The ranking of all candidates. `before` is the policy's order. O(n).
/// @param ranked  for each candidate, the key by which `before` compares it, and the candidate
template <class Key, class Before>
Ranking rank(std::string score, std::vector<std::pair<Key, RankedVersions>> ranked, Before before) {
  Ranking ranking{std::move(score), {}, ranked.size()};
  const auto named = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(ranked.size(), Ranking::kMost));
  std::partial_sort(ranked.begin(), named, ranked.end(),
                    [&](const auto& a, const auto& b) { return before(a.first, b.first); });
  for (auto one = ranked.begin(); one != named; ++one) ranking.first.push_back(std::move(one->second));
  return ranking;
}

/// A second base class of a Policy that explains its decisions. It is called only if the run is explained (simulate
/// --explain), and no call changes a later answer of the policy.
class Explainer {
 public:
  virtual ~Explainer() = default;

  /// The candidates of the latest answer of make_room(), the chosen ones first. Called before the answer is carried
  /// out.
  virtual Ranking ranking(const View&, const Request&) { return {}; }

  /// Whether before_run() and before_place() carry out a plan that was made before the run.
  virtual bool follows_plan() const { return false; }
};

/// The ranking of a policy's latest answer; empty if it does not explain itself.
inline Ranking ranking_of(Policy& policy, const View& view, const Request& request) {
  auto* const explainer = dynamic_cast<Explainer*>(&policy);
  return explainer != nullptr ? explainer->ranking(view, request) : Ranking{};
}

/// Whether the policy follows a plan; false if it does not explain itself.
inline bool follows_plan(const Policy& policy) {
  const auto* const explainer = dynamic_cast<const Explainer*>(&policy);
  return explainer != nullptr && explainer->follows_plan();
}

}  // namespace tidepool
