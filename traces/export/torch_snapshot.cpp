// The allocations of a run as PyTorch's allocator would have recorded them, for https://pytorch.org/memory_viz.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/lines.hpp"
#include "traces/export/exporter.hpp"
#include "traces/export/pickle_writer.hpp"
#include "traces/export/recording.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kSmallSegment = std::int64_t{2} << 20;  // of PyTorch: segments and pages for small blocks
constexpr std::int64_t kFarApart = kSmallSegment;

struct Segment {
  std::int64_t address = 0, size = 0;
  StreamId stream;
  bool small = false, expandable = false;

  std::int64_t end() const { return address + size; }
};

/// The memory that is reserved at the moment, by address. Pages are joined with adjacent ones of their stream and kind.
class ReservedMemory {
 public:
  void follow(const RecordedBlock& event) {
    switch (event.action) {
      case RecordedAction::kSegmentAlloc:
      case RecordedAction::kSegmentMap:
        return add({event.address, event.size.count(), event.stream, event.size.count() <= kSmallSegment,
                    event.action == RecordedAction::kSegmentMap});
      case RecordedAction::kSegmentFree:
      case RecordedAction::kSegmentUnmap:
        return take(event.address, event.address + event.size.count());
      default:
        return;
    }
  }

  const std::map<std::int64_t, Segment>& segments() const { return segments_; }

 private:
  void add(Segment added) {
    auto next = segments_.lower_bound(added.address);
    if (next != segments_.end() && joins(added, next->second)) {
      added.size += next->second.size;
      next = segments_.erase(next);
    }
    if (next != segments_.begin() && joins(std::prev(next)->second, added))
      std::prev(next)->second.size += added.size;
    else
      segments_.insert_or_assign(added.address, added);
  }

  static bool joins(const Segment& low, const Segment& high) {
    return low.expandable && high.expandable && low.end() == high.address && low.stream == high.stream &&
           low.small == high.small;
  }

  void take(std::int64_t first, std::int64_t end) {
    auto piece = segments_.upper_bound(first);
    if (piece != segments_.begin() && std::prev(piece)->second.end() > first) --piece;
    while (piece != segments_.end() && piece->first < end) {
      Segment below = piece->second, above = below;
      piece = segments_.erase(piece);
      below.size = first - below.address;
      above.size = above.end() - end;
      above.address = end;
      if (below.size > 0) segments_[below.address] = below;
      if (above.size > 0) segments_[above.address] = above;
    }
  }

  std::map<std::int64_t, Segment> segments_;
};

const char* word_of(RecordedAction action) {
  switch (action) {
    case RecordedAction::kSegmentAlloc:
      return "segment_alloc";
    case RecordedAction::kSegmentFree:
      return "segment_free";
    case RecordedAction::kSegmentMap:
      return "segment_map";
    case RecordedAction::kSegmentUnmap:
      return "segment_unmap";
    case RecordedAction::kFree:
      return "free_completed";
    default:
      return "alloc";
  }
}

/// The events and the live blocks of one device.
struct DeviceHistory {
  std::vector<const RecordedBlock*> events;  ///< in order
  std::vector<std::int64_t> times;           ///< of the events, in us
  std::vector<const RecordedBlock*> live;    ///< at the end, by address
};

class SnapshotWriter {
 public:
  explicit SnapshotWriter(const Recording& recording)
      : recording_{recording}, lanes_{lane_numbers(recording)}, live_{live_at_end(recording)}, devices_(1) {
    for (const RecordedBlock& block : recording.existing) history(block);
    add_events();
    for (const RecordedBlock& block : live_) history(block).live.push_back(&block);
  }

  std::string run() {
    out_.begin_dict();
    out_.text("segments");
    out_.begin_list();
    for (std::size_t device = 0; device < devices_.size(); ++device) write_segments(device);
    out_.end_list();
    out_.text("device_traces");
    out_.begin_list();
    for (const DeviceHistory& device : devices_) write_events(device);
    out_.end_list();
    out_.text("allocator_settings");
    out_.begin_dict();
    const auto found = recording_.meta.find("allocator_conf");
    const std::string conf = found == recording_.meta.end() ? "" : found->second;
    out_.entry("PYTORCH_CUDA_ALLOC_CONF", conf);
    out_.entry("expandable_segments", conf.find("expandable_segments:True") != std::string::npos);
    out_.end_dict();
    out_.end_dict();
    return out_.finish();
  }

 private:
  /// Adds the events. At equal times, readers take the device with the lower number first, so an event on a device with
  /// a lower number than that of the event before it has a later time.
  void add_events() {
    std::int64_t time = 0;
    std::uint16_t device = 0;
    for (const RecordedBlock& event : recording_.memory) {
      time = std::max(event.time.count() / 1000, time + (event.device < device));
      device = event.device;
      history(event).events.push_back(&event);
      history(event).times.push_back(time);
    }
  }

  DeviceHistory& history(const RecordedBlock& block) {
    if (block.device >= devices_.size()) devices_.resize(block.device + 1u);
    return devices_[block.device];
  }

  /// Segments that are reserved at the end. A live block at most kFarApart behind the end of a segment extends it; any
  /// other block outside of all segments begins a new one.
  static std::vector<Segment> segments(const DeviceHistory& device) {
    ReservedMemory reserved;
    for (const RecordedBlock* event : device.events) reserved.follow(*event);
    std::vector<Segment> all;
    auto next = reserved.segments().begin();
    const auto last = reserved.segments().end();
    for (const RecordedBlock* block : device.live) {
      while (next != last && next->first <= block->address) all.push_back((next++)->second);
      const std::int64_t end = block->address + block->size.count();
      if (all.empty() || block->address - all.back().end() > kFarApart)
        all.push_back({block->address, 0, block->stream});
      all.back().size = std::max(all.back().size, end - all.back().address);
    }
    for (; next != last; ++next) all.push_back(next->second);
    return all;
  }

  void write_segments(std::size_t number) {
    const DeviceHistory& device = devices_[number];
    auto block = device.live.begin();
    for (const Segment& segment : segments(device)) {
      const std::int64_t end = segment.end();
      const auto inside = [&](const auto& at) {
        return at != device.live.end() && (*at)->address < std::max(end, segment.address + 1);
      };
      std::int64_t allocated = 0;
      for (auto at = block; inside(at); ++at) allocated += (*at)->size.count();
      out_.begin_dict();
      out_.entry("device", static_cast<std::int64_t>(number));
      out_.entry("address", segment.address);
      out_.entry("total_size", segment.size);
      for (const char* key : {"allocated_size", "active_size", "requested_size"}) out_.entry(key, allocated);
      out_.entry("stream", lanes_[segment.stream.index()]);
      out_.entry("segment_type", segment.small ? "small" : "large");
      out_.text("segment_pool_id");
      out_.pair(0, 0);
      out_.entry("is_expandable", segment.expandable);
      write_frames("", "");
      out_.text("blocks");
      out_.begin_list();
      std::int64_t at = segment.address;
      for (; inside(block); ++block) {
        if ((*block)->address > at) write_unused(at, (*block)->address - at);
        write_block((*block)->address, (*block)->size.count(), "active_allocated");
        write_frames((*block)->name, (*block)->line);
        out_.end_dict();
        at = (*block)->address + (*block)->size.count();
      }
      if (at < end) write_unused(at, end - at);
      out_.end_list();
      out_.end_dict();
    }
  }

  void write_unused(std::int64_t address, std::int64_t size) {
    write_block(address, size, "inactive");
    write_frames("", "");
    out_.end_dict();
  }

  /// Begins a block; its frames and its end are still to be written.
  void write_block(std::int64_t address, std::int64_t size, const char* state) {
    out_.begin_dict();
    out_.entry("address", address);
    out_.entry("size", size);
    out_.entry("requested_size", size);
    out_.entry("state", state);
  }

  /// Writes the name of a buffer and the line that allocated it as frames, each if it is known.
  void write_frames(std::string_view name, std::string_view line) {
    out_.text("frames");
    out_.begin_list();
    if (!name.empty()) write_frame("", 0, name);
    const std::size_t colon = std::min(line.rfind(':'), line.size());
    const std::optional<std::int64_t> number = parse_whole(line.substr(std::min(colon + 1, line.size())));
    if (number && *number >= 0) write_frame(line.substr(0, colon), *number, "");
    out_.end_list();
  }

  void write_frame(std::string_view file, std::int64_t line, std::string_view name) {
    out_.begin_dict();
    out_.entry("filename", file);
    out_.entry("line", line);
    out_.entry("name", name);
    out_.end_dict();
  }

  void write_events(const DeviceHistory& device) {
    out_.begin_list();
    for (std::size_t i = 0; i < device.events.size(); ++i) {
      const RecordedBlock& event = *device.events[i];
      if (event.action == RecordedAction::kFree) write_event("free_requested", event, device.times[i]);
      write_event(word_of(event.action), event, device.times[i]);
    }
    out_.end_list();
  }

  void write_event(const char* action, const RecordedBlock& event, std::int64_t time) {
    out_.begin_dict();
    out_.entry("action", action);
    out_.entry("addr", event.address);
    out_.entry("size", event.size.count());
    out_.entry("stream", lanes_[event.stream.index()]);
    out_.entry("time_us", time);
    write_frames(event.name, event.action == RecordedAction::kAlloc ? event.line : "");
    out_.end_dict();
  }

  const Recording& recording_;
  const std::vector<std::int64_t> lanes_;  // numbers
  std::vector<RecordedBlock> live_;        // at the end, by device and address
  std::vector<DeviceHistory> devices_;
  PickleWriter out_;
};

std::string to_snapshot(const Recording& recording) {
  require_addresses(recording);
  return SnapshotWriter{recording}.run();
}

const RegisterExporter kSnapshot{{.name = "torch-snapshot",
                                  .summary = "allocations as PyTorch's memory snapshot, for memory_viz",
                                  .write_recording = to_snapshot}};

}  // namespace
}  // namespace tidepool
