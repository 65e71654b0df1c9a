#include "simulator/audit/start_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "simulator/audit/expandable_ranges.hpp"

namespace tidepool {
namespace {

constexpr Bytes kLargestSlack = kCachingSmallSize;

/// A block in use, while walking backwards.
struct Used {
  Bytes size;
  bool exact = true;  ///< as divided, not as rounded
  std::optional<std::size_t> freed;
};

/// A piece of mapped memory.
struct Mapped {
  Bytes size;
  CachingAllocator::Key key;
  bool expandable = false;
};

/// Undoes events, the last one first.
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
      if (!piece.expandable) add_native(address, piece);
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
    map_piece(segment.address, {segment.size, key_of(segment), segment.expandable});
    for (const SnapshotBlock& block : segment.blocks)
      if (block.state != BlockState::kInactive) used_[block.address] = {block.size, true, {}};
  }

  void map_piece(std::int64_t address, const Mapped& piece) {
    if (piece.size <= Bytes{}) return;
    const auto next = mapped_.lower_bound(address);
    const bool overlaps =
        (next != mapped_.end() && next->first < address + piece.size.count()) ||
        (next != mapped_.begin() && std::prev(next)->first + std::prev(next)->second.size.count() > address);
    if (overlaps) return contradict(fmt::format("the segment at {:#x} overlaps another", address));
    mapped_.emplace(address, piece);
  }

  bool is_mapped(std::int64_t address) const {
    const auto next = mapped_.upper_bound(address);
    return next != mapped_.begin() && std::prev(next)->first + std::prev(next)->second.size.count() > address;
  }

  void undo(std::size_t i) {
    const SnapshotEvent& event = events_[i];
    switch (event.action) {
      case SnapshotAction::kAlloc:
        if (used_.erase(event.address) == 0) contradict(i, "nothing says what became of the block at");
        if (!is_mapped(event.address)) contradict(i, "allocates in no segment, at");
        break;
      case SnapshotAction::kFreeCompleted:
        if (!used_.try_emplace(event.address, Used{rounded_request(config_, event.size), false, i}).second)
          contradict(i, "frees a block that is in use afterwards, at");
        break;
      case SnapshotAction::kSegmentAlloc: {
        const auto found = mapped_.find(event.address);
        if (found == mapped_.end() || found->second.size != event.size || found->second.expandable)
          contradict(i, "nothing says what became of the segment at");
        else
          mapped_.erase(found);
        break;
      }
      case SnapshotAction::kSegmentFree:
        map_piece(event.address, {event.size, key_of_native(event), false});
        break;
      case SnapshotAction::kSegmentMap:
        if (!unmap(event)) contradict(i, "nothing says what became of the pages at");
        break;
      case SnapshotAction::kSegmentUnmap:
        map_piece(event.address, {event.size, key_of_pages(event, config_), true});
        break;
      default:
        break;
    }
  }

  /// Takes pages out of what is mapped, which may have merged with others. @return whether they were mapped
  bool unmap(const SnapshotEvent& event) {
    const std::int64_t first = event.address, last = first + event.size.count();
    auto piece = mapped_.upper_bound(first);
    if (piece == mapped_.begin()) return false;
    --piece;
    for (std::int64_t at = first; at < last;) {
      if (piece == mapped_.end() || piece->first > at || !piece->second.expandable) return false;
      const std::int64_t end = piece->first + piece->second.size.count();
      if (end <= at) return false;
      const Mapped whole = piece->second;
      const std::int64_t begin = piece->first;
      piece = mapped_.erase(piece);
      if (begin < at) mapped_.emplace(begin, Mapped{Bytes{at - begin}, whole.key, true});
      if (end > last) mapped_.emplace(last, Mapped{Bytes{end - last}, whole.key, true});
      at = end;
    }
    return true;
  }

  /// Blocks in use between two addresses, taken out of used_.
  std::vector<std::pair<std::int64_t, Used>> take_used(std::int64_t first, std::int64_t last) {
    const auto begin = used_.lower_bound(first), end = used_.lower_bound(last);
    std::vector<std::pair<std::int64_t, Used>> taken(begin, end);
    used_.erase(begin, end);
    return taken;
  }

  void add_native(std::int64_t address, const Mapped& piece) {
    StartSegment segment{piece.key, false, {Bytes{address}, piece.size}, {}, {}};
    const std::int64_t end = address + piece.size.count();
    const auto used = take_used(address, end);
    for (std::size_t i = 0; i < used.size(); ++i) {
      const std::int64_t next = i + 1 < used.size() ? used[i + 1].first : end;
      add_block(segment, used[i].first, used[i].second, Bytes{next - used[i].first});
    }
    state_.segments.push_back(std::move(segment));
  }

  /// @param room  up to the next block in use or the end of the segment
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
    for (const ExpandableRange& found : find_ranges(snapshot_, config_, config_.range_size)) {
      if (found.device != device_) continue;
      const Block& range = found.place;
      state_.ranges.push_back(range);
      const std::int64_t end = (range.offset + range.size).count();
      StartSegment segment{found.key, true, range, {}, {}};
      for (auto piece = mapped_.lower_bound(range.offset.count()); piece != mapped_.end() && piece->first < end;
           ++piece) {
        if (!piece->second.expandable) continue;
        const Block run{Bytes{piece->first}, std::min(piece->second.size, Bytes{end - piece->first})};
        if (!segment.mapped.empty() && segment.mapped.back().offset + segment.mapped.back().size == run.offset)
          segment.mapped.back().size += run.size;
        else
          segment.mapped.push_back(run);
      }
      for (const Block& run : segment.mapped) {
        const std::int64_t last = (run.offset + run.size).count();
        const auto used = take_used(run.offset.count(), last);
        for (std::size_t k = 0; k < used.size(); ++k)
          add_block(segment, used[k].first, used[k].second,
                    Bytes{(k + 1 < used.size() ? used[k + 1].first : last) - used[k].first});
      }
      if (!segment.mapped.empty()) state_.segments.push_back(std::move(segment));
    }
  }

  const CachingConfig& config_;
  const std::vector<SnapshotEvent>& events_;
  int device_;
  const TorchSnapshot& snapshot_;
  std::map<std::int64_t, Used> used_;
  std::map<std::int64_t, Mapped> mapped_;
  StartState state_;
};

/// A block cut from the free one behind an ambiguous block begins where that ends: looks for the first such event
/// before the ambiguous block is freed.
/// @param first_alloc  the first event that allocates at an address
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
