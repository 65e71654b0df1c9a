// A tournament tree: the first of many keys, if only a few keys change between two queries; and its keys as a ranking.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/engine/decisions/ranking.hpp"

namespace tidepool {

/// A tournament tree over slots 0, 1, 2, ...: each slot is empty or has a key. winner() is the slot whose key comes
/// first by `Key::before(const Key&)`, a strict weak order; of equal keys, the lowest slot; kNone if all slots are
/// empty. set() and clear() are O(log n), winner() O(1).
template <class Key>
class Tournament {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Makes `slots` empty slots.
  void reset(std::size_t slots) {
    leaves_ = std::bit_ceil(slots < 1 ? std::size_t{1} : slots);
    keys_.assign(leaves_, Key{});
    winners_.assign(2 * leaves_, kNone);
  }

  void set(std::size_t slot, const Key& key) {
    keys_[slot] = key;
    winners_[leaves_ + slot] = static_cast<std::uint32_t>(slot);
    play(slot);
  }

  void clear(std::size_t slot) {
    if (winners_[leaves_ + slot] == kNone) return;
    winners_[leaves_ + slot] = kNone;
    play(slot);
  }

  std::uint32_t winner() const { return winners_[1]; }

  /// Calls visit(slot, key) for every slot that has a key. O(slots).
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t leaf = leaves_; leaf < 2 * leaves_; ++leaf)
      if (winners_[leaf] != kNone) visit(winners_[leaf], keys_[winners_[leaf]]);
  }

 private:
  void play(std::size_t slot) {
    for (std::size_t node = (leaves_ + slot) / 2; node > 0; node /= 2) {
      const std::uint32_t left = winners_[2 * node], right = winners_[2 * node + 1];
      const std::uint32_t best = left == kNone                                         ? right
                                 : right == kNone || !keys_[right].before(keys_[left]) ? left
                                                                                       : right;
      if (best == winners_[node] && best != slot) return;  // the changed slot neither was nor is the winner here
      winners_[node] = best;
    }
  }

  std::size_t leaves_ = 1;
  std::vector<Key> keys_;
  std::vector<std::uint32_t> winners_ = std::vector<std::uint32_t>(2, kNone);
};

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
