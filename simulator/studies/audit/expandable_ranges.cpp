#include "simulator/studies/audit/expandable_ranges.hpp"

#include <algorithm>

namespace tidepool {
namespace {

CachingAllocator::Key key_of(const SnapshotEvent& event, bool small) {
  const SnapshotPool pool = event.pool.value_or(SnapshotPool{});
  return {pool.owner, pool.number, small, event.stream};
}

/// Whether two pieces may belong to one range.
bool agree(const MappedFor& a, const MappedFor& b) {
  CachingAllocator::Key as_b = a.key;
  if (!a.certain || !b.certain) as_b.small = b.key.small;
  return a.expandable && b.expandable && as_b == b.key;
}

struct StartPiece {
  Block place;
  MappedFor about;
};

/// Decides whether uncertain pages at the beginning of the log are small or large. They are of the kind of adjacent
/// pages of their stream and pool; pages without such neighbours are large.
void settle(std::vector<StartPiece>& pieces) {
  const auto touches_below = [&](std::size_t i) {
    return pieces[i - 1].place.offset + pieces[i - 1].place.size == pieces[i].place.offset;
  };
  const auto settle_as = [](MappedFor& about, const MappedFor& other) {
    if (!about.certain && other.certain && agree(about, other)) about = other;
  };
  for (std::size_t i = 1; i < pieces.size(); ++i)
    if (touches_below(i)) settle_as(pieces[i].about, pieces[i - 1].about);
  for (std::size_t i = pieces.size(); i-- > 1;)
    if (touches_below(i)) settle_as(pieces[i - 1].about, pieces[i].about);
  for (StartPiece& piece : pieces) piece.about.certain = true;
}

/// Follows the mapped memory through the log, and finds the range of each piece.
class RangeWalk {
 public:
  RangeWalk(const CachingConfig& config, Bytes longest) : config_{config}, longest_{longest} {}

  void begin(const MemoryPieces<MappedFor>& start) {
    std::vector<StartPiece> pieces;
    for (const auto& [address, piece] : start) pieces.push_back({{address, piece.size}, piece.about});
    settle(pieces);
    for (const StartPiece& piece : pieces) {
      const std::size_t range = add(piece.place, piece.about, {});
      if (range == kNative) continue;
      std::vector<Block>& mapped = found_[range].range.mapped;
      if (!mapped.empty() && mapped.back().offset + mapped.back().size == piece.place.offset)
        mapped.back().size += piece.place.size;
      else
        mapped.push_back(piece.place);
    }
  }

  void follow(const std::vector<SnapshotEvent>& events, std::span<const MappedFor> maps) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Block place{Bytes{events[i].address}, events[i].size};
      switch (events[i].action) {
        case SnapshotAction::kSegmentMap:
          add(place, maps.front(), i);
          maps = maps.subspan(1);
          break;
        case SnapshotAction::kSegmentAlloc:
          add(place, native_for(events[i]), i);
          break;
        case SnapshotAction::kSegmentFree:
        case SnapshotAction::kSegmentUnmap:
          mapped_.take(place);
          break;
        default:
          break;
      }
    }
  }

  std::vector<ExpandableRange> ranges() && {
    std::vector<ExpandableRange> ranges;
    for (Found& found : found_) {
      Block& place = found.range.place;
      // In a damaged log, the range may have pages beyond this minimum, up to `top`.
      place.size = std::max(std::min(length_of(found.range.key), found.end - place.offset), found.top - place.offset);
      ranges.push_back(std::move(found.range));
    }
    return ranges;
  }

 private:
  static constexpr std::size_t kNative = SIZE_MAX;
  struct Found {
    ExpandableRange range;
    Bytes top;  // the end of its highest page
    Bytes end;  // the lowest address above its pages at which something else was mapped while the range existed
  };

  Bytes length_of(const CachingAllocator::Key& key) const {
    return round_up(longest_, key.small ? kCachingSmallSegment : config_.large_segment_size);
  }

  bool fits(std::size_t range, const Block& place, const CachingAllocator::Key& key) const {
    if (range == kNative || found_[range].range.key != key) return false;
    const Bytes first = std::min(found_[range].range.place.offset, place.offset);
    return std::max(found_[range].top, place.offset + place.size) - first <= length_of(key);
  }

  /// @return the range that the new piece is in; kNative if it is in no range
  std::size_t add(const Block& place, const MappedFor& about, std::optional<std::size_t> event) {
    if (place.size <= Bytes{}) return kNative;
    const auto piece = mapped_.add(place, kNative);
    if (piece == mapped_.end()) return kNative;
    using Piece = MemoryPieces<std::size_t>::Map::const_iterator;
    const Piece lower = piece == mapped_.begin() ? mapped_.end() : Piece{std::prev(piece)}, upper = std::next(piece);
    const std::size_t below = lower == mapped_.end() ? kNative : lower->second.about;
    const std::size_t above = upper == mapped_.end() ? kNative : upper->second.about;
    std::size_t& range = piece->second.about;
    if (about.expandable) {
      const bool fits_below = fits(below, place, about.key), fits_above = fits(above, place, about.key);
      if (fits_below && fits_above)
        range =
            upper->first - place.offset - place.size < place.offset - lower->first - lower->second.size ? above : below;
      else
        range = fits_below ? below : fits_above ? above : found_.size();
      if (range == found_.size()) found_.push_back({{about.key, place, event, {}}, {}, Bytes{INT64_MAX}});
      Found& found = found_[range];
      found.range.place.offset = std::min(found.range.place.offset, place.offset);
      found.top = std::max(found.top, place.offset + place.size);
      if (upper != mapped_.end() && above != range) found.end = std::min(found.end, upper->first);
    }
    if (below != kNative && below != range) found_[below].end = std::min(found_[below].end, place.offset);
    return range;
  }

  const CachingConfig& config_;
  Bytes longest_;
  MemoryPieces<std::size_t> mapped_;  // the range of each piece
  std::vector<Found> found_;
};

}  // namespace

MappedFor mapped_for(const SnapshotSegment& segment) {
  return {{segment.pool.owner, segment.pool.number, segment.small, segment.stream}, segment.expandable};
}

MappedFor pages_for(const SnapshotEvent& event, const CachingConfig& config) {
  const bool small = event.size.count() % config.large_segment_size.count() != 0;
  return {key_of(event, small), true, small};
}

MappedFor native_for(const SnapshotEvent& event) { return {key_of(event, event.size <= kCachingSmallSegment)}; }

std::vector<ExpandableRange> find_ranges(const MemoryPieces<MappedFor>& start, const std::vector<SnapshotEvent>& events,
                                         std::span<const MappedFor> maps, const CachingConfig& config, Bytes longest) {
  RangeWalk walk{config, longest};
  walk.begin(start);
  walk.follow(events, maps);
  return std::move(walk).ranges();
}

Bytes range_distance(const std::vector<ExpandableRange>& ranges) {
  Bytes least = kOpenEnd;
  for (const ExpandableRange& range : ranges) least = std::min(least, range.place.size);
  return least;
}

}  // namespace tidepool
