#include "simulator/studies/audit/start_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tidepool {
namespace {

constexpr Bytes kLargestSlack = kCachingSmallSize;

/// A block in use, while walking backwards.
struct Used {
  Bytes size;
  bool exact = true;  ///< whether `size` is the block's size; false: it is the size of the rounded request
  std::optional<std::size_t> freed;
};

/// Undoes events in reverse order.
class Rewind {
 public:
  Rewind(const TorchSnapshot& snapshot, int device, const CachingConfig& config)
      : config_{config},
        events_{snapshot.device_traces[static_cast<std::size_t>(device)]},
        device_{device},
        snapshot_{snapshot} {}

  StartState run() {
    for (const SnapshotSegment& segment : snapshot_.segments)
      if (segment.device == device_) take_final(segment);
    for (std::size_t i = events_.size(); i-- > 0;) undo(i);
    for (const auto& [address, piece] : mapped_)
      if (!piece.about.expandable) add_native({address, piece.size}, piece.about.key);
    add_expandable();
    if (auto orphan = used_.begin(); orphan != used_.end())
      contradict(fmt::format("the block at {:#x} is in no segment", orphan->first));
    return std::move(state_);
  }

 private:
  void contradict(const std::string& what) {
    if (state_.contradiction.empty()) state_.contradiction = what;
  }
  void contradict(std::size_t event, std::string_view what) {
    contradict(fmt::format("trace entry {}: {} {:#x}", event, what, events_[event].address));
  }

  void take_final(const SnapshotSegment& segment) {
    map_piece(segment.address, segment.size, mapped_for(segment));
    for (const SnapshotBlock& block : segment.blocks)
      if (block.state != BlockState::kInactive) used_[block.address] = {block.size, true, {}};
  }

  void map_piece(std::int64_t address, Bytes size, const MappedFor& about) {
    if (size > Bytes{} && mapped_.add({Bytes{address}, size}, about) == mapped_.end())
      contradict(fmt::format("the segment at {:#x} overlaps another", address));
  }

  /// Records that the pages at an address are small or large. @return  whether there are pages
  bool settle(Bytes address, bool small) {
    const auto piece = mapped_.find(address);
    if (piece == mapped_.end()) return false;
    MappedFor& about = piece->second.about;
    if (!about.certain) about.key.small = small;
    about.certain = true;
    return true;
  }
  bool settle_by_block(const SnapshotEvent& event) {
    return settle(Bytes{event.address}, rounded_request(config_, event.size) <= kCachingSmallSize);
  }

  /// The owner of pages that an event unmaps. A release unmaps large pages before small ones. Within each kind, its
  /// events are sorted by stream, then from the smallest to the largest free block; a free block is larger than its
  /// whole pages by less than two pages. Where this order breaks, the small pages begin: the pages before are large.
  MappedFor given_back(std::size_t i) {
    const SnapshotEvent& event = events_[i];
    MappedFor about = pages_for(event, config_);
    if (i + 1 == events_.size() || events_[i + 1].action != SnapshotAction::kSegmentUnmap) {
      small_follow_ = false;
    } else {
      const SnapshotEvent& next = events_[i + 1];
      const auto rank = [](const SnapshotEvent& e, Bytes size) { return std::pair{e.stream, size}; };
      small_follow_ |= rank(event, event.size) >= rank(next, next.size + kCachingSmallSegment * 2);
    }
    if (about.key.small || about.key.is_private()) small_follow_ = false;
    about.certain |= small_follow_;
    return about;
  }

  void undo(std::size_t i) {
    const SnapshotEvent& event = events_[i];
    switch (event.action) {
      case SnapshotAction::kAlloc:
        if (used_.erase(event.address) == 0) contradict(i, "the log does not show the end of the block at");
        if (!settle_by_block(event)) contradict(i, "allocates in no segment, at");
        break;
      case SnapshotAction::kFreeCompleted:
        if (!used_.try_emplace(event.address, Used{rounded_request(config_, event.size), false, i}).second)
          contradict(i, "frees a block that is in use afterwards, at");
        settle_by_block(event);
        break;
      case SnapshotAction::kSegmentAlloc: {
        const auto found = mapped_.find(Bytes{event.address});
        if (found == mapped_.end() || found->first.count() != event.address || found->second.size != event.size ||
            found->second.about.expandable)
          contradict(i, "the log does not show the end of the segment at");
        else
          mapped_.take({found->first, event.size});
        break;
      }
      case SnapshotAction::kSegmentFree:
        map_piece(event.address, event.size, native_for(event));
        break;
      case SnapshotAction::kSegmentMap:
        if (!unmap(event)) contradict(i, "the log does not show the end of the pages at");
        break;
      case SnapshotAction::kSegmentUnmap:
        map_piece(event.address, event.size, given_back(i));
        break;
      default:
        break;
    }
  }

  /// Removes the pages that an event maps from the mapped memory, where they may be parts of larger pieces.
  /// @return  whether all of them were mapped and expandable
  bool unmap(const SnapshotEvent& event) {
    const Block place{Bytes{event.address}, event.size};
    MappedFor about = pages_for(event, config_);
    // Pages that were unmapped together with these are of the same kind.
    settle(place.offset, about.key.small);
    settle(place.offset + place.size - 1_B, about.key.small);
    Bytes mapped;
    bool expandable = true;
    for (const auto& [piece, was] : mapped_.take(place)) {
      mapped += piece.size;
      expandable &= was.expandable;
      about.key = was.key;
    }
    about.certain = true;
    maps_.push_back(about);
    return expandable && mapped == place.size;
  }

  /// Blocks in use between two addresses, taken out of used_.
  std::vector<std::pair<std::int64_t, Used>> take_used(std::int64_t first, std::int64_t last) {
    const auto begin = used_.lower_bound(first), end = used_.lower_bound(last);
    std::vector<std::pair<std::int64_t, Used>> taken(begin, end);
    used_.erase(begin, end);
    return taken;
  }

  void add_native(const Block& place, const CachingAllocator::Key& key) {
    StartSegment segment{key, false, place, {}, {}};
    const std::int64_t end = (place.offset + place.size).count();
    const auto used = take_used(place.offset.count(), end);
    for (std::size_t i = 0; i < used.size(); ++i) {
      const std::int64_t next = i + 1 < used.size() ? used[i + 1].first : end;
      add_block(segment, used[i].first, used[i].second, Bytes{next - used[i].first});
    }
    state_.segments.push_back(std::move(segment));
  }

  /// @param room  bytes from the address up to the next block in use or the end of the segment
  void add_block(StartSegment& segment, std::int64_t address, const Used& used, Bytes room) {
    if (used.size > room || used.size <= Bytes{}) {
      contradict(fmt::format("the block at {:#x} overlaps the next or its segment's end", address));
      return;
    }
    StartBlock block{address, used.size, {}, used.freed};
    const Bytes behind = room - used.size;
    if (!used.exact && !segment.key.small && !segment.expandable && !config_.expandable_segments) {
      if (used.size >= config_.max_split_size || behind <= kLargestSlack)
        block.size = room;
      else
        block.most_slack = std::min(kLargestSlack, behind - kLargestSlack - kCachingMinBlock);
    }
    segment.used.push_back(block);
  }

  void add_expandable() {
    std::reverse(maps_.begin(), maps_.end());
    const auto ranges = [&](Bytes longest) { return find_ranges(mapped_, events_, maps_, config_, longest); };
    state_.range_size =
        config_.range_size != CachingConfig::kUnlimited ? config_.range_size : range_distance(ranges(kOpenEnd));
    state_.ranges = ranges(state_.range_size);
    for (const ExpandableRange& range : state_.ranges) {
      if (range.mapped.empty()) continue;
      StartSegment segment{range.key, true, range.place, range.mapped, {}};
      for (const Block& run : segment.mapped) {
        const std::int64_t last = (run.offset + run.size).count();
        const auto used = take_used(run.offset.count(), last);
        for (std::size_t k = 0; k < used.size(); ++k)
          add_block(segment, used[k].first, used[k].second,
                    Bytes{(k + 1 < used.size() ? used[k + 1].first : last) - used[k].first});
      }
      state_.segments.push_back(std::move(segment));
    }
  }

  const CachingConfig& config_;
  const std::vector<SnapshotEvent>& events_;
  int device_;
  const TorchSnapshot& snapshot_;
  std::map<std::int64_t, Used> used_;
  MemoryPieces<MappedFor> mapped_;
  std::vector<MappedFor> maps_;  // the owner of the pages of each kSegmentMap
  bool small_follow_ = false;    // whether small pages of the same release follow: pages before them are large
  StartState state_;
};

/// Finds the end of an ambiguous block: the first allocation from the free block behind it begins there. Allocations
/// after the ambiguous block is freed do not count.
/// @param first_alloc  by address: the first event that allocates there
void pin(StartBlock& block, const std::map<std::int64_t, std::size_t>& first_alloc) {
  const std::int64_t end = block.address + block.size.count();
  std::optional<std::int64_t> address;
  std::size_t before = block.freed.value_or(SIZE_MAX);
  for (auto it = first_alloc.lower_bound(end); it != first_alloc.end() && it->first <= end + block.most_slack.count();
       ++it)
    if (it->second < before) address = it->first, before = it->second;
  if (!address) return;
  block.size = Bytes{*address - block.address};
  block.most_slack = {};
}

}  // namespace

std::vector<AmbiguousBlock> StartState::ambiguous() const {
  std::vector<AmbiguousBlock> found;
  for (const StartSegment& segment : segments)
    for (const StartBlock& block : segment.used)
      if (block.most_slack > Bytes{}) found.push_back({block.address, block.size, block.most_slack});
  return found;
}

std::string StartState::text() const {
  if (!contradiction.empty()) return "contradiction: " + contradiction;
  const std::vector<AmbiguousBlock> blocks = ambiguous();
  if (blocks.empty()) return "determined";
  return fmt::format("ambiguous: {} block{}, first at {:#x}", blocks.size(), blocks.size() == 1 ? "" : "s",
                     blocks.front().address);
}

StartState start_state(const TorchSnapshot& snapshot, int device, const CachingConfig& config) {
  StartState state = Rewind{snapshot, device, config}.run();
  const auto& events = snapshot.device_traces[static_cast<std::size_t>(device)];
  std::map<std::int64_t, std::size_t> first_alloc;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (events[i].action == SnapshotAction::kAlloc) first_alloc.emplace(events[i].address, i);
  for (StartSegment& segment : state.segments)
    for (StartBlock& block : segment.used)
      if (block.most_slack > Bytes{}) pin(block, first_alloc);
  return state;
}

}  // namespace tidepool
