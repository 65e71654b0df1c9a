// Addresses in use, and the versions that use them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "traces/base/quantity.hpp"
#include "traces/ids.hpp"

namespace tidepool {

/// Disjoint ranges of addresses, each with an owner. Sorted, in chunks of at most kMost ranges, so that a change moves
/// few of them. A change costs O(log n + n / kMost) with a small constant. This matters, since every second action of
/// a plan changes a range.
class PlacesInUse {
 public:
  /// Takes [first, end), or names the owner of a range that overlaps it.
  std::optional<VersionId> take(Bytes first, Bytes end, VersionId owner) {
    if (chunks_.empty()) {
      chunks_.push_back(new_chunk());
      chunks_.back().push_back({first, end, owner});
      return std::nullopt;
    }
    auto chunk = chunk_of(first);
    auto next = std::upper_bound(chunk->begin(), chunk->end(), first, begins_above);
    const Range* above = next != chunk->end() ? &*next : first_behind(chunk);
    if (above != nullptr && above->first < end) return above->owner;
    if (next != chunk->begin() && std::prev(next)->end > first) return std::prev(next)->owner;
    if (chunk->size() == kMost) {
      split(chunk);
      chunk = chunk_of(first);
      next = std::upper_bound(chunk->begin(), chunk->end(), first, begins_above);
    }
    chunk->insert(next, {first, end, owner});
    return std::nullopt;
  }

  /// Removes the range that begins at `first`, if there is one.
  void leave(Bytes first) {
    if (chunks_.empty()) return;
    const auto chunk = chunk_of(first);
    const auto next = std::upper_bound(chunk->begin(), chunk->end(), first, begins_above);
    if (next == chunk->begin() || std::prev(next)->first != first) return;
    chunk->erase(std::prev(next));
    if (chunk->empty()) chunks_.erase(chunk);
  }

  /// The range that begins at `first`, if there is one, gets another owner.
  void hand_over(Bytes first, VersionId owner) {
    if (chunks_.empty()) return;
    const auto chunk = chunk_of(first);
    const auto next = std::upper_bound(chunk->begin(), chunk->end(), first, begins_above);
    if (next != chunk->begin() && std::prev(next)->first == first) std::prev(next)->owner = owner;
  }

  /// Whether some of [first, end) is in use.
  bool any(Bytes first, Bytes end) const {
    for (const std::vector<Range>& chunk : chunks_)
      if (chunk.front().first < end && chunk.back().end > first)
        for (const Range& range : chunk)
          if (range.first < end && range.end > first) return true;
    return false;
  }

 private:
  static constexpr std::size_t kMost = 64;
  struct Range {
    Bytes first, end;
    VersionId owner;
  };
  using Chunk = std::vector<Range>;
  using Chunks = std::vector<Chunk>;

  static bool begins_above(Bytes address, const Range& range) { return address < range.first; }

  static Chunk new_chunk() {
    Chunk chunk;
    chunk.reserve(kMost);
    return chunk;
  }

  /// The last chunk that begins at or below the address; the first if none does.
  Chunks::iterator chunk_of(Bytes address) {
    const auto above = std::upper_bound(chunks_.begin(), chunks_.end(), address,
                                        [](Bytes at, const Chunk& chunk) { return at < chunk.front().first; });
    return above == chunks_.begin() ? above : std::prev(above);
  }

  const Range* first_behind(Chunks::const_iterator chunk) const {
    return std::next(chunk) == chunks_.end() ? nullptr : &std::next(chunk)->front();
  }

  void split(Chunks::iterator chunk) {
    Chunk back = new_chunk();
    back.assign(chunk->begin() + kMost / 2, chunk->end());
    chunk->resize(kMost / 2);
    chunks_.insert(std::next(chunk), std::move(back));
  }

  Chunks chunks_;  // none is empty
};

}  // namespace tidepool
