// A map from address ranges that do not overlap to values.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "simulator/pool.hpp"

namespace tidepool {

/// The mapped or occupied address ranges of a device ("pieces"), each with a value of type T. Sizes and addresses in
/// bytes. All calls take O(log pieces); take() also takes time proportional to its result.
template <typename T>
class MemoryPieces {
 public:
  struct Piece {
    Bytes size;
    T about;
  };
  using Map = std::map<Bytes, Piece>;

  /// @return the new piece; end() if it would overlap a piece, and then nothing has changed
  typename Map::iterator add(const Block& place, T about) {
    const auto next = pieces_.lower_bound(place.offset);
    if (next != pieces_.end() && next->first < place.offset + place.size) return pieces_.end();
    if (next != pieces_.begin() && end_of(std::prev(next)) > place.offset) return pieces_.end();
    return pieces_.emplace_hint(next, place.offset, Piece{place.size, std::move(about)});
  }

  /// Removes the range `place`; pieces that lie partly in it are cut. @return the removed parts, in address order
  std::vector<std::pair<Block, T>> take(const Block& place) {
    std::vector<std::pair<Block, T>> taken;
    const Bytes last = place.offset + place.size;
    auto next = pieces_.upper_bound(place.offset);
    if (next != pieces_.begin()) --next;
    while (next != pieces_.end() && next->first < last) {
      const Bytes begin = next->first, end = end_of(next);
      if (end <= place.offset) {
        ++next;
        continue;
      }
      const T about = next->second.about;
      next = pieces_.erase(next);
      if (begin < place.offset) pieces_.emplace_hint(next, begin, Piece{place.offset - begin, about});
      if (end > last) next = pieces_.emplace_hint(next, last, Piece{end - last, about});
      const Bytes first = std::max(begin, place.offset);
      taken.push_back({{first, std::min(end, last) - first}, about});
    }
    return taken;
  }

  /// The piece that holds an address; end() if there is none.
  typename Map::iterator find(Bytes address) {
    auto next = pieces_.upper_bound(address);
    if (next == pieces_.begin() || end_of(--next) <= address) return pieces_.end();
    return next;
  }

  typename Map::const_iterator begin() const { return pieces_.begin(); }
  typename Map::const_iterator end() const { return pieces_.end(); }
  typename Map::const_iterator lower_bound(Bytes address) const { return pieces_.lower_bound(address); }

 private:
  static Bytes end_of(typename Map::const_iterator piece) { return piece->first + piece->second.size; }

  Map pieces_;
};

}  // namespace tidepool
