// Rankings of the candidates in an index, to explain a choice.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "policies/planning/eviction/tournament.hpp"
#include "simulator/engine/decisions/ranking.hpp"

namespace tidepool {

/// The candidates of a tournament over versions, in its order.
/// @tparam Key  the key that candidates compare: score() is its value, kScore the meaning and unit of that
/// @param known  known(slot): whether the score is exact; false: it is a lower bound
template <class Key, class Known>
Ranking ranking_of(const Tournament<Key>& index, Known known) {
  using Place = std::pair<Key, std::uint32_t>;  // of equal keys the lowest slot wins, as in the tournament
  std::vector<std::pair<Place, RankedVersions>> all;
  index.for_each([&](std::uint32_t slot, const Key& key) {
    all.emplace_back(Place{key, slot}, RankedVersions{{VersionId{slot}}, key.score(), !known(slot)});
  });
  return rank(Key::kScore, std::move(all), [](const Place& a, const Place& b) {
    if (a.first.before(b.first)) return true;
    return !b.first.before(a.first) && a.second < b.second;
  });
}
template <class Key>
Ranking ranking_of(const Tournament<Key>& index) {
  return ranking_of(index, [](std::uint32_t) { return true; });
}

}  // namespace tidepool
