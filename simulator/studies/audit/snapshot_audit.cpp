#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "simulator/studies/audit/audit.hpp"
#include "simulator/studies/audit/snapshot_script.hpp"
#include "simulator/studies/audit/start_state.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kMostRestarts = 1'000;
constexpr std::size_t kMostReplayed = 50'000'000;  ///< events, in all passes
constexpr std::size_t kMostStreams = 1'000;

using Source = CachingAllocator::Source;

/// One pass over a device's events from a given start state.
class Replay {
 public:
  Replay(const TorchSnapshot& snapshot, const std::vector<SnapshotEvent>& events, const CachingConfig& config,
         StartState& start, DeviceAudit& audit)
      : events_{events},
        start_{start},
        audit_{audit},
        script_{events, start.ranges, audit},
        model_{config, script_, CachingConfig::kUnlimited} {
    script_.attach(model_);
    look_ahead();
    for (const StartSegment& segment : start.segments) adopt(segment);
    for (const SnapshotSegment& segment : snapshot.segments) {
      if (segment.device != audit.device) continue;
      if (segment.pool.owner != 0 || segment.pool.number != 0) private_segments_.push_back(&segment);
      for (const SnapshotBlock& block : segment.blocks)
        if (block.state != BlockState::kInactive) last_allocated_ += block.size;
    }
    see_peaks();
  }

  /// @return  false if a slack of the start state was set after a wrong answer, so that the pass must be repeated
  bool run() {
    std::size_t i = 0;
    try {
      while (i < events_.size()) {
        script_.go_to(i);
        step(i);
        i = std::max(script_.position(), i + 1);
      }
      // The snapshot has the sizes of all blocks at the log's end; sizes in the start state may be too small.
      audit_.peaks = {peaks_.allocated + last_allocated_ - model_.allocated(), peaks_.reserved};
    } catch (const Mismatch& mismatch) {
      if (adjusted_) return false;
      audit_.first_mismatch = fmt::format("trace entry {}: {}", script_.position(), mismatch.what);
    }
    return true;
  }

 private:
  void adopt(const StartSegment& segment) {
    std::vector<Block> used;
    for (const StartBlock& block : segment.used) used.push_back({Bytes{block.address}, block.size});
    if (segment.expandable) {
      model_.adopt_range(segment.key, segment.place, segment.mapped, used);
      for (const Block& run : segment.mapped) script_.hold(run);
    } else {
      model_.adopt_segment(segment.key, segment.place, used);
      script_.hold(segment.place);
    }
  }

  void step(std::size_t i) {
    switch (events_[i].action) {
      case SnapshotAction::kAlloc:
      case SnapshotAction::kOom:
        return malloc(i);
      case SnapshotAction::kSegmentAlloc:
      case SnapshotAction::kSegmentMap:
        if (outlook_[i].request != kNever) return malloc(outlook_[i].request);
        throw Mismatch{fmt::format("{}, after which nothing is allocated", to_text(events_[i]))};
      case SnapshotAction::kSegmentFree:
      case SnapshotAction::kSegmentUnmap:
        if (!run_retry(i)) model_.release_cached_blocks(private_segment(events_[i].address) != nullptr);
        return;
      case SnapshotAction::kFreeCompleted:
        if (!run_retry(i) && !model_.free(Bytes{events_[i].address}))
          throw Mismatch{to_text(events_[i]) + ", which is not in use"};
        return;
      default:
        return;
    }
  }

  /// Finds, for every event, the next events of each kind within the same request.
  void look_ahead() {
    outlook_.resize(events_.size() + 1);
    for (std::size_t i = events_.size(); i-- > 0;) {
      Outlook& here = outlook_[i] = outlook_[i + 1];
      switch (events_[i].action) {
        case SnapshotAction::kAlloc:
        case SnapshotAction::kOom:
          here = {.request = i};
          break;
        case SnapshotAction::kFreeRequested:
          here = {};
          break;
        case SnapshotAction::kSegmentAlloc:
        case SnapshotAction::kSegmentMap:
          here.ask = i;
          break;
        case SnapshotAction::kSegmentFree:
        case SnapshotAction::kSegmentUnmap:
          here.give = i;
          if (here.last_give == kNever) here.last_give = i;
          break;
        case SnapshotAction::kFreeCompleted:
          if (here.last_give == kNever) here.free = i;
          break;
        default:
          break;
      }
    }
  }

  /// Whether the events from `i` on can be the retry of a refused request. A retry first frees the blocks that it
  /// waited for, then releases memory to the device, and then asks the device again or fails. If a request to the
  /// device comes before the release, or a free after it, the events are no retry.
  bool retries(std::size_t i) const {
    const Outlook& next = outlook_[i];
    if (next.request == kNever) return false;
    const bool fails = events_[next.request].action == SnapshotAction::kOom;
    if (next.give == kNever) return fails && next.ask == kNever && misses(next.request);
    if (next.ask < next.give || next.free != kNever) return false;
    if (next.ask == kNever && !fails && !model_.config().expandable_segments) return false;
    return misses(next.request);
  }
  /// Whether an empty_cache before a request may look like the request's retry. With a split limit, both may begin with
  /// the same events. In expandable segments, a retry may take the free memory that it waited for, next to unmapped
  /// pages, without further events.
  bool looks_like_empty_cache(std::size_t i) const {
    const Outlook& next = outlook_[i];
    return model_.config().max_split_size != CachingConfig::kUnlimited ||
           (next.ask == kNever && events_[next.request].action != SnapshotAction::kOom);
  }
  bool misses(std::size_t request) const { return !model_.has_cached(events_[request].size, source(request)); }

  /// Runs the request that the events from `i` on belong to, if they are its retry. If they may also be an empty_cache
  /// before it, they are the retry only if the model agrees. @return  whether the request ran
  bool run_retry(std::size_t i) {
    if (!retries(i)) return false;
    if (!looks_like_empty_cache(i)) {
      malloc(outlook_[i].request);
      return true;
    }
    const CachingAllocator model = model_;
    const SnapshotScript script = script_;
    const DeviceAudit audit = audit_;
    try {
      malloc(outlook_[i].request);
      return true;
    } catch (const Mismatch&) {
      model_ = model;
      script_ = script;
      audit_ = audit;
      adjusted_ = false;
      return false;
    }
  }

  const SnapshotSegment* private_segment(std::int64_t address) const {
    for (const SnapshotSegment* segment : private_segments_)
      if (segment->address <= address && address - segment->address < segment->size.count()) return segment;
    return nullptr;
  }

  /// The stream and pool of a request. If the log does not name the pool of an allocation, the pool is that of the
  /// private segment at its address, or else the default pool.
  Source source(std::size_t i) const {
    const SnapshotEvent& event = events_[i];
    Source source{.stream = event.stream};
    const SnapshotSegment* segment = event.action == SnapshotAction::kAlloc ? private_segment(event.address) : nullptr;
    const SnapshotPool pool = event.pool ? *event.pool : segment ? segment->pool : SnapshotPool{};
    source.owner = pool.owner;
    source.number = pool.number;
    source.expandable = segment == nullptr || segment->expandable;
    return source;
  }

  void malloc(std::size_t target) {
    const SnapshotEvent& event = events_[target];
    const Source from = source(target);
    script_.serve(CachingAllocator::key_of(rounded_request(model_.config(), event.size), from));
    const std::optional<Block> block = model_.malloc(event.size, from);
    const std::size_t reached = script_.position();
    if (event.action == SnapshotAction::kOom) {
      if (block)
        throw Mismatch{fmt::format("the trace shows {}; the model finds {:#x}", to_text(event), block->offset.count())};
      expect_all_consumed(reached, target);
      ++audit_.out_of_memory_matched;
    } else {
      if (!block) throw Mismatch{fmt::format("the trace shows {}; the model finds no memory", to_text(event))};
      if (reached != target || block->offset.count() != event.address) {
        adjusted_ = adjust(*block, event.size, target);
        expect_all_consumed(reached, target);
        throw Mismatch{fmt::format("the trace shows {}; the model gives {:#x}", to_text(event), block->offset.count())};
      }
      ++audit_.matched;
    }
    see_peaks();
    script_.go_to(target + 1);
  }

  void see_peaks() {
    peaks_ = {std::max(peaks_.allocated, model_.allocated()), std::max(peaks_.reserved, model_.reserved())};
  }

  /// @throws Mismatch  if an event between the beginning and the end of a request was not consumed
  void expect_all_consumed(std::size_t reached, std::size_t target) const {
    if (reached < target)
      throw Mismatch{fmt::format("the trace shows {}; the model has no need of it", to_text(events_[reached]))};
  }

  /// Handles a free block that the model should not have taken. If the block before it has an unknown slack, this slack
  /// becomes just so large that the free block is too small for the request. @return  whether a slack was set
  bool adjust(const Block& taken, Bytes requested, std::size_t now) {
    const Bytes size = rounded_request(model_.config(), requested);
    for (StartSegment& segment : start_.segments)
      for (StartBlock& block : segment.used) {
        if (block.most_slack == Bytes{} || Bytes{block.address} + block.size != taken.offset) continue;
        if (block.freed && *block.freed < now) continue;
        const Bytes slack = model_.room_at(taken.offset) - size + kCachingMinBlock;
        if (slack > block.most_slack) return false;
        block.size += slack;
        block.most_slack -= slack;
        return true;
      }
    return false;
  }

  static constexpr std::size_t kNever = SIZE_MAX;
  /// The first events of each kind from here on, up to the request that they belong to.
  struct Outlook {
    std::size_t request = kNever;    ///< alloc or oom
    std::size_t ask = kNever;        ///< request to the device for memory
    std::size_t give = kNever;       ///< release to the device
    std::size_t last_give = kNever;  ///< the last release
    std::size_t free = kNever;       ///< a free after last_give
  };

  const std::vector<SnapshotEvent>& events_;
  StartState& start_;
  DeviceAudit& audit_;
  SnapshotScript script_;
  CachingAllocator model_;
  std::vector<const SnapshotSegment*> private_segments_;
  std::vector<Outlook> outlook_;  // by event
  MemoryPeaks peaks_;             // of the model
  Bytes last_allocated_;          // at the log's end
  bool adjusted_ = false;
};

/// The size after `key`, written in MiB, in a text like "expandable_segments:True,large_segment_size_mb:12".
std::optional<Bytes> mebibytes_in(std::string_view text, std::string_view key) {
  const std::size_t found = text.find(key);
  if (found == std::string_view::npos) return {};
  constexpr int kMost = 1 << 20;
  int value = 0;
  const char* begin = text.data() + found + key.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc{} || value < 1 || value > kMost) return {};
  return 1_MiB * value;
}

/// The counts of a log's events, before anything is compared.
DeviceAudit counted(int device, const std::vector<SnapshotEvent>& events) {
  DeviceAudit audit;
  audit.device = device;
  for (const SnapshotEvent& event : events) switch (event.action) {
      case SnapshotAction::kAlloc:
        ++audit.allocations;
        break;
      case SnapshotAction::kSegmentAlloc:
      case SnapshotAction::kSegmentMap:
        ++audit.segment_allocations;
        break;
      case SnapshotAction::kSegmentFree:
      case SnapshotAction::kSegmentUnmap:
        ++audit.segment_releases;
        break;
      case SnapshotAction::kOom:
        ++audit.out_of_memory;
        break;
      default:
        break;
    }
  return audit;
}

/// Whether any event is about memory. (Others are only marks.)
bool says_anything(const std::vector<SnapshotEvent>& events) {
  return std::any_of(events.begin(), events.end(), [](const SnapshotEvent& event) {
    return event.action != SnapshotAction::kSnapshot && event.action != SnapshotAction::kOther;
  });
}

/// Refuses more streams and pools than a program has: a damaged file may claim many, and the model needs memory for
/// each.
void check_streams(const TorchSnapshot& snapshot, int device) {
  std::set<std::int64_t> streams;
  for (const SnapshotSegment& segment : snapshot.segments)
    if (segment.device == device) streams.insert({segment.stream, segment.pool.owner, segment.pool.number});
  for (const SnapshotEvent& event : snapshot.device_traces[static_cast<std::size_t>(device)]) {
    streams.insert(event.stream);
    if (event.pool) streams.insert({event.pool->owner, event.pool->number});
  }
  if (streams.size() > kMostStreams)
    throw InputError{
        fmt::format("device {}: {} streams and pools; expected at most {}", device, streams.size(), kMostStreams)};
}

/// The audit of one device from a start state, after as many passes as necessary.
DeviceAudit audit_from(StartState start, const TorchSnapshot& snapshot, int device, CachingConfig config) {
  const std::vector<SnapshotEvent>& events = snapshot.device_traces[static_cast<std::size_t>(device)];
  config.range_size = start.range_size;
  DeviceAudit audit;
  const std::size_t passes = std::clamp<std::size_t>(kMostReplayed / events.size(), 1, kMostRestarts);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    audit = counted(device, events);
    if (Replay{snapshot, events, config, start, audit}.run()) break;
  }
  audit.start_state = start.text();
  audit.ambiguous = start.ambiguous();
  return audit;
}

/// The audit of one device. If the model differs from the log and the size of ranges is a guess (their least distance),
/// the audit runs again with unlimited ranges, and the better result counts.
DeviceAudit audit_device(const TorchSnapshot& snapshot, int device, CachingConfig config) {
  StartState start = start_state(snapshot, device, config);
  const bool closed = start.range_size < kOpenEnd;
  DeviceAudit audit = audit_from(std::move(start), snapshot, device, config);
  if (audit.exact() || !closed) return audit;
  config.range_size = kOpenEnd;
  DeviceAudit open = audit_from(start_state(snapshot, device, config), snapshot, device, config);
  return open.exact() || open.matched > audit.matched ? open : audit;
}

}  // namespace

AuditReport audit_snapshot(const TorchSnapshot& snapshot, const CachingConfig& config) {
  AuditReport report;
  for (std::size_t device = 0; device < snapshot.device_traces.size(); ++device) {
    if (!says_anything(snapshot.device_traces[device])) continue;
    check_streams(snapshot, static_cast<int>(device));
    report.devices.push_back(audit_device(snapshot, static_cast<int>(device), config));
  }
  return report;
}

CachingConfig recorded_config(const SnapshotSettings& settings) {
  CachingConfig config;
  if (settings.max_split_size > Bytes{}) config.max_split_size = settings.max_split_size;
  config.roundup_power2_divisions = settings.roundup_power2_divisions;
  config.expandable_segments = settings.expandable_segments;
  // Older snapshots have these two settings only in the text of the allocator's configuration.
  if (const auto text = mebibytes_in(settings.conf, "large_segment_size_mb:")) config.large_segment_size = *text;
  if (settings.large_segment_size > Bytes{}) config.large_segment_size = *settings.large_segment_size;
  config.max_non_split_rounding = config.large_segment_size;
  if (const auto text = mebibytes_in(settings.conf, "max_non_split_rounding_mb:"))
    config.max_non_split_rounding = *text;
  return config;
}

}  // namespace tidepool
