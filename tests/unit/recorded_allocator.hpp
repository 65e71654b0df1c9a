// Snapshots like PyTorch's: random programs run with the model of its allocator, and every event is recorded.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "simulator/engine/pools/caching_allocator.hpp"
#include "simulator/engine/segment_device.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool::testing {

/// A program on a device of limited capacity. A snapshot of it has all events from a chosen one on.
class RecordedAllocator final : public Device {
 public:
  RecordedAllocator(const CachingConfig& config, Bytes capacity, std::uint32_t seed)
      : config_{config}, memory_{capacity}, model_{config, *this, capacity}, random_{seed} {}

  /// Makes `steps` requests and frees, in waves, on `streams` streams. On average one of `delay` frees waits for
  /// another stream; if `delay` is 0, none waits.
  void run(int steps, std::uint32_t streams, std::uint32_t delay) {
    for (int i = 0; i < steps; ++i) {
      if (random_() % 1'000 == 0) model_.release_cached_blocks();
      const bool grows = (i / 200) % 2 == 0;
      if (live_.empty() || random_() % 10 < (grows ? 6u : 4u)) {
        const Bytes size = random_size();
        request(size, random_() % streams);
      } else {
        release(delay > 0 && random_() % delay == 0);
      }
    }
  }

  TorchSnapshot snapshot(std::size_t first_event) const {
    TorchSnapshot snapshot;
    snapshot.settings.max_split_size =
        config_.max_split_size == CachingConfig::kUnlimited ? Bytes{-1} : config_.max_split_size;
    snapshot.settings.expandable_segments = config_.expandable_segments;
    snapshot.device_traces.emplace_back(events_.begin() + static_cast<std::ptrdiff_t>(first_event), events_.end());
    for (const auto& [address, segment] : segments_) snapshot.segments.push_back(final_segment(address, segment));
    return snapshot;
  }
  /// Whether the event before this one is an allocation, with which a request ends, so that a snapshot that begins here
  /// does not cut a request in two. Also true behind the last event. `event` > 0.
  bool begins_request(std::size_t event) const {
    return event >= events_.size() || events_[event - 1].action == SnapshotAction::kAlloc;
  }
  std::size_t events() const { return events_.size(); }
  std::size_t count(SnapshotAction action) const {
    return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(),
                                                  [&](const SnapshotEvent& event) { return event.action == action; }));
  }

  std::optional<Bytes> reserve(Bytes size) override {
    const std::optional<Bytes> address = memory_.reserve(size);
    if (!address) return wait(), std::nullopt;
    record(SnapshotAction::kSegmentAlloc, *address, size, stream_);
    segments_[*address] = {size, stream_, small_, false};
    return address;
  }
  void release(Bytes address, Bytes size) override {
    memory_.release(address, size);
    take_back(address, size);
  }
  void unmap(Bytes address, Bytes size, Bytes page) override {
    memory_.unmap(address, size, page);
    take_back(address, size);
  }
  Bytes reserve_addresses(Bytes size) override { return memory_.reserve_addresses(size); }
  void release_addresses(Bytes address, Bytes size) override { memory_.release_addresses(address, size); }
  bool map(Bytes address, Bytes size, Bytes page) override {
    if (!memory_.map(address, size, page)) return wait(), false;
    record(SnapshotAction::kSegmentMap, address, size, stream_);
    auto piece = segments_.emplace(address, Segment{size, stream_, small_, true}).first;
    if (const auto next = std::next(piece); next != segments_.end() && joined(piece, next)) {
      piece->second.size += next->second.size;
      segments_.erase(next);
    }
    if (piece != segments_.begin() && joined(std::prev(piece), piece)) {
      std::prev(piece)->second.size += piece->second.size;
      segments_.erase(piece);
    }
    return true;
  }

 private:
  struct Segment {
    Bytes size;
    std::int64_t stream = 0;
    bool small = false;
    bool expandable = false;
  };
  using Piece = std::map<Bytes, Segment>::iterator;
  static bool joined(Piece a, Piece b) {
    return a->second.expandable && b->second.expandable && a->first + a->second.size == b->first &&
           a->second.stream == b->second.stream && a->second.small == b->second.small;
  }
  void take_back(Bytes address, Bytes size) {
    auto piece = std::prev(segments_.upper_bound(address));
    const Segment whole = piece->second;
    const Bytes begin = piece->first, end = begin + whole.size;
    record(whole.expandable ? SnapshotAction::kSegmentUnmap : SnapshotAction::kSegmentFree, address, size,
           whole.stream);
    segments_.erase(piece);
    if (begin < address) segments_[begin] = {address - begin, whole.stream, whole.small, whole.expandable};
    if (address + size < end)
      segments_[address + size] = {end - address - size, whole.stream, whole.small, whole.expandable};
  }
  struct Live {
    Block block;
    Bytes requested;
    std::int64_t stream = 0;
  };

  void record(SnapshotAction action, Bytes address, Bytes size, std::int64_t stream) {
    events_.push_back({.action = action, .address = address.count(), .size = size, .stream = stream, .pool = {}});
  }

  Bytes random_size() {
    const auto upto = [&](std::int64_t most) { return Bytes{1 + static_cast<std::int64_t>(random_()) % most}; };
    switch (random_() % 4) {
      case 0:
        return upto(4'096);
      case 1:
        return upto(1 << 20);
      case 2:
        return upto(10 << 20);
      default:
        return upto(60 << 20);
    }
  }

  void request(Bytes size, std::int64_t stream) {
    while (!waiting_.empty() && random_() % 2 == 0) complete();
    stream_ = stream;
    small_ = rounded_request(config_, size) <= kCachingSmallSize;
    const std::optional<Block> block = model_.malloc(size, {.stream = stream});
    if (!block) return record(SnapshotAction::kOom, Bytes{0}, size, stream);
    record(SnapshotAction::kAlloc, block->offset, size, stream);
    live_.push_back({*block, size, stream});
  }

  void release(bool later) {
    std::swap(live_[random_() % live_.size()], live_.back());
    const Live gone = live_.back();
    live_.pop_back();
    record(SnapshotAction::kFreeRequested, gone.block.offset, gone.requested, gone.stream);
    waiting_.insert(later ? waiting_.end() : waiting_.begin(), gone);
    if (!later) complete();
  }

  void complete() {
    const Live gone = waiting_.front();
    waiting_.erase(waiting_.begin());
    record(SnapshotAction::kFreeCompleted, gone.block.offset, gone.requested, gone.stream);
    model_.free(gone.block.offset);
  }
  void wait() {
    while (!waiting_.empty()) complete();
  }

  SnapshotSegment final_segment(Bytes address, const Segment& segment) const {
    SnapshotSegment result{.address = address.count(),
                           .size = segment.size,
                           .stream = segment.stream,
                           .small = segment.small,
                           .expandable = segment.expandable,
                           .pool = {},
                           .blocks = {}};
    for (const std::vector<Live>* blocks : {&live_, &waiting_})
      for (const Live& live : *blocks)
        if (live.block.offset >= address && live.block.offset < address + segment.size)
          result.blocks.push_back({live.block.offset.count(), live.block.size, live.requested,
                                   blocks == &live_ ? BlockState::kActive : BlockState::kPendingFree});
    return result;
  }

  CachingConfig config_;
  SegmentDevice memory_;
  CachingAllocator model_;
  std::mt19937 random_;
  std::vector<SnapshotEvent> events_;
  std::map<Bytes, Segment> segments_;
  std::vector<Live> live_, waiting_;
  std::int64_t stream_ = 0;  // the stream of the current request
  bool small_ = false;
};

}  // namespace tidepool::testing
