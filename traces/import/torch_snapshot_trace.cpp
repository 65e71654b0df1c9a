// Conversion of the allocator's events to lifetimes.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/recorded_names.hpp"
#include "traces/import/torch_snapshot.hpp"

namespace tidepool {
namespace {

using Action = SnapshotAction;

/// The lifetimes on one device. A block is older than the recorded events if the first event at its address is a free,
/// or if it is in a segment at the end and neither an allocation nor a free was recorded at its address. Only completed
/// frees count.
class DeviceLifetimes {
 public:
  DeviceLifetimes(const TorchSnapshot& snapshot, std::size_t device, bool try_failed)
      : device_{device}, try_failed_{try_failed}, lines_{snapshot.lines} {
    if (device < snapshot.device_traces.size()) events_ = snapshot.device_traces[device];
    std::unordered_map<std::int64_t, bool> live;  // by address; an address without an event so far has no entry
    for (const SnapshotEvent& event : events_) {
      if (event.action != Action::kAlloc && event.action != Action::kFreeCompleted) continue;
      const auto [entry, is_first] = live.try_emplace(event.address);
      entry->second = event.action == Action::kAlloc;
      if (is_first && !entry->second) older_.push_back({event.address, event.size, event.stream, 0});
    }
    for (const SnapshotSegment& segment : snapshot.segments) {
      if (static_cast<std::size_t>(segment.device) != device) continue;
      for (const SnapshotBlock& block : segment.blocks) {
        if (block.state == BlockState::kInactive) continue;
        const auto found = live.find(block.address);
        if (found == live.end()) {
          lost_beginning_ = lost_beginning_ || block.line != 0;
          older_.push_back(
              {block.address, block.requested < Bytes{} ? block.size : block.requested, segment.stream, block.line});
        } else if (!found->second) {
          ++lost_allocations_;
        }
      }
    }
  }

  /// Adds the older blocks. Called before the first event of any device.
  void begin(TraceBuilder& builder) {
    builder.losses().dropped_records += lost_allocations_;
    for (const Allocation& block : older_) live_[block.address] = builder.existing(spec(builder, block));
  }

  /// Number of events that allocate or free.
  std::size_t changes() const {
    return static_cast<std::size_t>(std::ranges::count_if(events_, [](const SnapshotEvent& event) {
      return event.action == Action::kAlloc || event.action == Action::kFreeRequested ||
             event.action == Action::kFreeCompleted || event.action == Action::kOom;
    }));
  }
  /// Whether a block has the stack of its allocation, which is only recorded together with an event, but no event.
  bool lost_beginning() const { return lost_beginning_; }

  const SnapshotEvent* next() const { return at_ < events_.size() ? &events_[at_] : nullptr; }

  void step(TraceBuilder& builder) {
    const SnapshotEvent& event = events_[at_++];
    if (event.action == Action::kOom && try_failed_)
      builder.free(builder.alloc(spec(builder, {-1, event.size, event.stream, event.line})));
    if (event.action != Action::kAlloc && event.action != Action::kFreeCompleted) return;
    BufferId& live = live_[event.address];
    if (event.action == Action::kFreeCompleted && !live.valid()) {
      ++builder.losses().unmatched_frees;
      return;
    }
    if (live.valid()) {
      if (event.action == Action::kAlloc) ++builder.losses().dropped_records;  // its free was not recorded
      builder.free(live);
      live = {};
    }
    if (event.action == Action::kAlloc)
      live = builder.alloc(spec(builder, {event.address, event.size, event.stream, event.line}));
  }

 private:
  struct Allocation {
    std::int64_t address;
    Bytes size;
    std::int64_t stream;
    std::uint32_t line;  ///< in the snapshot's lines
  };

  Buffer spec(TraceBuilder& builder, const Allocation& allocation) {
    Buffer buffer;
    buffer.size = allocation.size;
    buffer.address = allocation.address;
    buffer.stream = stream_id(builder, allocation.stream);
    if (allocation.line != 0) buffer.line = line_id(builder, allocation.line);
    buffer.device = static_cast<std::uint16_t>(device_);
    return buffer;
  }

  StringId line_id(TraceBuilder& builder, std::uint32_t line) {
    line_ids_.resize(lines_.size());
    StringId& known = line_ids_[line];
    if (!known.valid()) known = builder.text(lines_[line]);
    return known;
  }

  StreamId stream_id(TraceBuilder& builder, std::int64_t stream) {
    const auto [entry, added] = streams_.try_emplace(stream);
    if (added) {
      if (streams_.size() > kMostStreams)
        throw InputError{fmt::format("device {}: more than {} streams", device_, kMostStreams)};
      entry->second = builder.stream(stream_name(static_cast<std::int64_t>(device_), stream));
    }
    return entry->second;
  }

  std::size_t device_;
  bool try_failed_;
  std::span<const SnapshotEvent> events_;
  std::size_t at_ = 0;
  std::span<const std::string> lines_;
  std::vector<StringId> line_ids_;  // of lines_, in the trace; none: not used so far
  std::vector<Allocation> older_;
  std::int64_t lost_allocations_ = 0;
  bool lost_beginning_ = false;
  std::unordered_map<std::int64_t, BufferId> live_;  // by address; none: freed
  std::unordered_map<std::int64_t, StreamId> streams_;
};

/// The device whose next event is the oldest, nullptr at the end. Without times, one device after the other.
DeviceLifetimes* oldest(std::vector<DeviceLifetimes>& devices) {
  DeviceLifetimes* first = nullptr;
  for (DeviceLifetimes& device : devices)
    if (device.next() != nullptr && (first == nullptr || device.next()->time_us < first->next()->time_us))
      first = &device;
  return first;
}

/// The most bytes alive at once.
Bytes most_alive(const TraceData& data) {
  Bytes alive, most;
  for (const Buffer& buffer : data.buffers)
    if (buffer.born_before) most = alive += buffer.size;
  for (const Event& event : data.events) {
    if (event.kind == EventKind::kAlloc) alive += data.buffers[event.id].size;
    if (event.kind == EventKind::kFree) alive -= data.buffers[event.id].size;
    most = std::max(most, alive);
  }
  return most;
}

/// States the most bytes that were reserved and allocated on the device, if the snapshot says it, unless a request
/// failed: the job wanted more.
void state_peaks(TraceBuilder& builder, const TorchSnapshot& snapshot, std::size_t device) {
  const RecordedMemory memory = recorded_memory(snapshot, device);
  if (memory.failed_request || memory.lacks_segments || memory.most_reserved == Bytes{}) return;
  builder.meta()["reserved_peak_bytes"] = std::to_string(memory.most_reserved.count());
  builder.meta()["allocated_peak_bytes"] = std::to_string(most_alive(builder.so_far()).count());
}

int sniff_snapshot(std::string_view head) {
  if (head.size() < 2 || head[0] != '\x80' || head[1] < 2 || head[1] > 5) return 0;
  const bool named =
      head.find("segments") != std::string_view::npos || head.find("device_traces") != std::string_view::npos;
  return named ? 95 : 40;
}

Trace read_devices(const Input& input, std::optional<std::size_t> only) {
  try {
    return to_trace(parse_torch_snapshot(input.bytes()), {.only = only});
  } catch (const InputError& error) {
    throw error.at(input.path());
  }
}

const RegisterImporter kSnapshot{{"torch-snapshot",
                                  "PyTorch memory snapshots (torch.cuda.memory._dump_snapshot)",
                                  {".pickle", ".pkl"},
                                  sniff_snapshot,
                                  read_torch_snapshot,
                                  read_torch_snapshot_device}};

}  // namespace

Trace to_trace(const TorchSnapshot& snapshot, const SnapshotSelection& selection, SnapshotHistory* history) {
  const std::optional<std::size_t> only = selection.only;
  TraceBuilder builder;
  std::size_t count = snapshot.device_traces.size();
  for (const SnapshotSegment& segment : snapshot.segments)
    count = std::max(count, static_cast<std::size_t>(segment.device) + 1);
  if (only && *only >= count)
    throw InputError{count == 0 ? fmt::format("no device {}; the snapshot is empty", *only)
                                : fmt::format("no device {}; expected 0 to {}", *only, count - 1)};
  std::vector<DeviceLifetimes> devices;
  for (std::size_t i = 0; i < count; ++i)
    if (!only || *only == i) devices.emplace_back(snapshot, i, selection.try_failed);
  const auto has_history = [](const DeviceLifetimes& device) { return device.changes() > 1; };
  if (!devices.empty() && std::ranges::none_of(devices, has_history))  // one event is kept without max_entries
    builder.meta()["lacks"] =
        "events: it has only what was allocated when the snapshot was taken; call "
        "torch.cuda.memory._record_memory_history() before the step";
  else if (std::ranges::any_of(devices, &DeviceLifetimes::lost_beginning))
    builder.meta()["lacks"] =
        "the beginning of its history: buffers are alive whose events were dropped, so an earlier peak is not seen; "
        "call torch.cuda.memory._record_memory_history() with larger max_entries";
  for (DeviceLifetimes& device : devices) device.begin(builder);
  if (history != nullptr) *history = {};
  while (DeviceLifetimes* device = oldest(devices)) {
    const std::int64_t time_us = device->next()->time_us;
    device->step(builder);
    if (history == nullptr) continue;
    history->time_us.push_back(time_us);
    history->of_record.resize(builder.so_far().events.size(), history->events++);
  }
  builder.losses().dropped_records += snapshot.unknown_actions;
  if (const auto used = only ? std::vector{*only} : devices_with_memory(snapshot); used.size() == 1)
    state_peaks(builder, snapshot, used[0]);
  builder.meta()["source"] = "torch-snapshot";
  if (!snapshot.settings.conf.empty()) builder.meta()["allocator_conf"] = snapshot.settings.conf;
  return builder.finish();
}

Trace read_torch_snapshot(const Input& input) { return read_devices(input, std::nullopt); }

Trace read_torch_snapshot_device(const Input& input, std::size_t device) { return read_devices(input, device); }

}  // namespace tidepool
