#include "tracer/lower/memory_events.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "tracer/lower/address_ranges.hpp"

namespace tidepool {

namespace {

constexpr std::int64_t kClockSlack = 10'000'000;  // ns by which the clocks of two files may differ for a short time

static_assert(static_cast<int>(raw::Category::kInput) == static_cast<int>(BufferKind::kInput) &&
              static_cast<int>(raw::Category::kOptimizerState) == static_cast<int>(BufferKind::kOptimizerState));

/// Whether the memory is a variable of a loaded module, which nobody allocates. PyTorch's modules have 1,600 of them.
bool is_static(raw::MemoryKind kind) {
  return kind == raw::MemoryKind::kDeviceStatic || kind == raw::MemoryKind::kManagedStatic;
}

std::uint16_t device_number(std::uint32_t device) { return device > 0xffff ? 0 : static_cast<std::uint16_t>(device); }

/// An event of the driver or of the framework.
struct Event {
  GpuMemory memory;
  bool tensor = false;   ///< of the framework, not of the driver: about a tensor or, if `segment`, about a segment
  bool segment = false;  ///< only tells where the framework's segments are
  bool mapped = false;   ///< of the driver: pages that a call of virtual memory management mapped
  bool unmaps = false;   ///< of the driver: ends all of its blocks that begin in the range
};

class Collector {
 public:
  Collector(const ProcessLog& process, bool as_requested) : process_{process}, as_requested_{as_requested} {}

  std::vector<GpuMemory> run() {
    for (const FittedLog& file : process_.files) {
      add_driver(file);
      add_vmm(file);
      add_framework(file);
    }
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.memory.time < b.memory.time; });
    pair_driver();
    std::vector<GpuMemory> kept;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      Event& event = events_[i];
      if (event.segment || event.unmaps) continue;
      if (event.tensor || !is_segment_[block_[i]]) kept.push_back(std::move(event.memory));
    }
    std::move(unmapped_.begin(), unmapped_.end(), std::back_inserter(kept));
    std::stable_sort(kept.begin(), kept.end(),
                     [](const GpuMemory& one, const GpuMemory& other) { return one.time < other.time; });
    if (process_.ends) free_all(kept, *process_.ends);
    return kept;
  }

 private:
  /// Adds frees of all live memory, as at the end of a program: at `time`, or at the last event if that is later.
  static void free_all(std::vector<GpuMemory>& events, std::int64_t time) {
    std::map<std::pair<std::uint16_t, std::int64_t>, GpuMemory> live;
    for (const GpuMemory& event : events) {
      const std::pair place{event.device, event.address};
      if (event.event == BlockEvent::kFree)
        live.erase(place);
      else
        live.insert_or_assign(place, event);
      time = std::max(time, event.time);
    }
    for (auto& [place, block] : live) {
      block.event = BlockEvent::kFree;
      block.time = time;
      events.push_back(std::move(block));
    }
  }

  void add_driver(const FittedLog& file) {
    for (const raw::Memory& record : file.log.memory) {
      if (on_host(record.memory) || is_static(record.memory)) continue;
      if (record.operation == raw::MemoryOperation::kUnknown) continue;
      const std::int64_t time = file.clock.common(record.time);
      const bool numbered = record.correlation != 0;
      if (!seen_.emplace(numbered, numbered ? record.correlation : time, record.operation, record.address).second)
        continue;
      Event event;
      event.memory.event = record.operation == raw::MemoryOperation::kAlloc  ? BlockEvent::kAlloc
                           : record.operation == raw::MemoryOperation::kFree ? BlockEvent::kFree
                                                                             : BlockEvent::kExisting;
      event.memory.time = time;
      event.memory.address = checked(file.log, "address", record.address);
      event.memory.size = checked(file.log, "size", record.size);
      event.memory.device = device_number(record.device);
      event.memory.stream = process_.stream(record.context, record.stream);
      event.memory.name = file.log.text(record.name == raw::Text::kEmpty ? record.source : record.name);
      events_.push_back(std::move(event));
    }
  }

  void add_vmm(const FittedLog& file) {
    for (const raw::Vmm& record : file.log.vmm) {
      if (record.operation != raw::VmmOperation::kMap && record.operation != raw::VmmOperation::kUnmap) continue;
      Event event;
      event.unmaps = record.operation == raw::VmmOperation::kUnmap;
      event.mapped = !event.unmaps;
      event.memory.time = file.clock.common(record.time);
      event.memory.address = checked(file.log, "address", record.address);
      event.memory.size = checked(file.log, "size", record.size);
      event.memory.device = device_number(record.device);
      event.memory.stream = process_.stream(raw::kNoId, raw::kNoId);
      events_.push_back(std::move(event));
    }
  }

  void add_framework(const FittedLog& file) {
    using raw::Action;
    const std::vector<raw::FrameworkMemory>& records = file.log.framework_memory;
    const bool completes = std::any_of(records.begin(), records.end(), [](const raw::FrameworkMemory& record) {
      return record.action == Action::kFreeCompleted;
    });
    for (const raw::FrameworkMemory& record : records) {
      Event event;
      event.tensor = true;
      switch (record.action) {
        case Action::kAlloc:
          break;
        case Action::kFreeRequested:
          if (completes) continue;
          [[fallthrough]];
        case Action::kFreeCompleted:
          event.memory.event = BlockEvent::kFree;
          break;
        case Action::kExisting:
          event.memory.event = BlockEvent::kExisting;
          break;
        case Action::kSegmentAlloc:
        case Action::kSegmentMap:
        case Action::kSegmentExisting:
          event.segment = true;
          break;
        default:
          continue;
      }
      event.memory.time = file.clock.common(record.time);
      event.memory.address = checked(file.log, "address", record.address);
      event.memory.size = checked(file.log, "size", record.size);
      event.memory.device = device_number(record.device);
      event.memory.kind = static_cast<BufferKind>(record.category);
      const auto stream = process_.streams.find(record.stream);
      event.memory.stream = stream == process_.streams.end() ? process_.stream(raw::kNoId, raw::kNoId) : stream->second;
      event.memory.name = file.log.text(record.name);
      events_.push_back(std::move(event));
    }
  }

  /// Numbers the driver's blocks and marks those that are segments. Facts that the framework tells later about a live
  /// tensor, such as its purpose, count from the tensor's beginning.
  void pair_driver() {
    block_.assign(events_.size(), 0);
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.tensor) {
        mark_segment(event.memory);
        if (!event.segment) follow_tensor(i);
      } else if (event.unmaps) {
        unmap(event.memory);
      } else {
        follow_block(i);
      }
    }
  }

  void follow_block(std::size_t at) {
    const GpuMemory& memory = events_[at].memory;
    const auto live = live_.find(memory.address);
    if (live != live_.end() && memory.event != BlockEvent::kAlloc) {
      block_[at] = live->second.id;
      if (memory.event == BlockEvent::kFree) forget(live);
      return;
    }
    block_[at] = is_segment_.size();
    // A profiler may report mapped pages that the record of cuMemMap has reported already.
    const bool told_before =
        live != live_.end() && live->second.mapped != events_[at].mapped && live->second.size == memory.size;
    is_segment_.push_back(told_before);
    if (memory.event == BlockEvent::kFree || told_before) return;
    if (live != live_.end()) forget(live);
    segments_.remove(static_cast<std::uint64_t>(memory.address), end_of(memory.address, memory.size));
    live_[memory.address] = {memory.size, block_[at], memory.device, events_[at].mapped};
    // The framework may have reported this memory at a slightly earlier time, because clocks differ.
    for (const Early& early : early_)
      if (memory.time - early.time <= kClockSlack && early.address < end_of(memory.address, memory.size) &&
          static_cast<std::uint64_t>(memory.address) < early.end)
        is_segment_.back() = true;
  }

  struct Block {
    std::int64_t size = 0;
    std::size_t id = 0;
    std::uint16_t device = 0;
    bool mapped = false;
  };
  using Live = std::map<std::int64_t, Block>;  // by address

  Live::iterator forget(Live::iterator block) {
    segments_.remove(static_cast<std::uint64_t>(block->first), end_of(block->first, block->second.size));
    return live_.erase(block);
  }

  static std::uint64_t end_of(std::int64_t address, std::int64_t size) {
    return static_cast<std::uint64_t>(address) + static_cast<std::uint64_t>(size);
  }

  /// Marks the segment of a framework's allocation: one allocation of the driver, or adjacent mapped pages.
  void mark_segment(const GpuMemory& memory) {
    const auto first = static_cast<std::uint64_t>(memory.address);
    const std::uint64_t end = std::max(end_of(memory.address, memory.size), first + 1);
    std::uint64_t known = segments_.end_of(first);
    for (; known < end; known = segments_.end_of(known)) {
      const auto behind = live_.upper_bound(static_cast<std::int64_t>(known));
      if (behind == live_.begin()) break;
      const auto& [address, block] = *std::prev(behind);
      if (known >= end_of(address, block.size)) break;
      is_segment_[block.id] = true;
      if (!block.mapped) return;
      segments_.add(static_cast<std::uint64_t>(address), end_of(address, block.size));
    }
    if (known >= end) return;
    early_.push_back({memory.time, known, end});
    while (memory.time - early_.front().time > kClockSlack || early_.size() > kMostEarly) early_.pop_front();
  }

  void follow_tensor(std::size_t at) {
    const GpuMemory& memory = events_[at].memory;
    const std::pair place{memory.device, memory.address};
    if (memory.event == BlockEvent::kFree) {
      tensors_.erase(place);
      return;
    }
    const auto [entry, added] = tensors_.try_emplace(place, at);
    if (memory.event == BlockEvent::kAlloc) {
      entry->second = at;
    } else if (!added) {
      GpuMemory& begin = events_[entry->second].memory;
      if (begin.kind == BufferKind::kUnknown) begin.kind = memory.kind;
      if (begin.name.empty()) begin.name = memory.name;
      if (as_requested_ && memory.size > 0) begin.size = std::min(begin.size, memory.size);
    }
  }

  void unmap(const GpuMemory& range) {
    for (auto block = live_.lower_bound(range.address);
         block != live_.end() && block->first - range.address < range.size; block = forget(block)) {
      GpuMemory end = range;
      end.event = BlockEvent::kFree;
      end.address = block->first;
      end.size = block->second.size;
      end.device = block->second.device;
      if (!is_segment_[block->second.id]) unmapped_.push_back(std::move(end));
    }
  }

  static constexpr std::size_t kMostEarly = 64;

  struct Early {  // memory of a tensor or segment that lies in no block known by then
    std::int64_t time;
    std::uint64_t address, end;
  };

  const ProcessLog& process_;
  bool as_requested_;
  std::vector<Event> events_;
  std::set<std::tuple<bool, std::int64_t, raw::MemoryOperation, std::uint64_t>> seen_;
  Live live_;                       // blocks of the driver
  AddressRanges segments_;          // segments among the mapped pages, so that known pages are not visited again
  std::vector<std::size_t> block_;  // by event: the number of the driver's block
  std::vector<bool> is_segment_;    // by block; other blocks are buffers
  std::deque<Early> early_;
  std::map<std::pair<std::uint16_t, std::int64_t>, std::size_t> tensors_;
  std::vector<GpuMemory> unmapped_;
};

RangeMeaning to_meaning(raw::Meaning meaning) {
  switch (meaning) {
    case raw::Meaning::kIteration:
      return RangeMeaning::kIteration;
    case raw::Meaning::kPhase:
      return RangeMeaning::kPhase;
    case raw::Meaning::kModule:
      return RangeMeaning::kModule;
    default:
      return RangeMeaning::kByName;
  }
}

void end_range(GpuRange& range, std::int64_t time) {
  if (!range.end) range.end = std::max(range.start, time);
}

}  // namespace

std::vector<GpuMemory> memory_events(const ProcessLog& process, bool as_requested) {
  return Collector{process, as_requested}.run();
}

std::vector<GpuRange> ranges(const ProcessLog& process) {
  using raw::RangeAction;
  struct Moment {
    std::int64_t time;
    const raw::Range* record;
    const raw::Log* log;
  };
  std::vector<Moment> moments;
  for (const FittedLog& file : process.files)
    for (const raw::Range& record : file.log.ranges)
      moments.push_back({file.clock.common(record.time), &record, &file.log});
  std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.time < b.time; });

  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<GpuRange> found;
  std::map<std::uint32_t, std::vector<std::size_t>> pushed;  // by thread
  std::map<std::uint64_t, std::size_t> begun;                // by id
  std::size_t iteration = kNone;
  for (const auto& [time, record, log] : moments) {
    const auto open = [&, at = time, range = record, file = log] {
      found.push_back({at, std::nullopt, file->text(range->name), to_meaning(range->meaning)});
      return found.size() - 1;
    };
    switch (record->action) {
      case RangeAction::kPush:
        pushed[record->thread].push_back(open());
        break;
      case RangeAction::kPop:
        if (std::vector<std::size_t>& stack = pushed[record->thread]; !stack.empty()) {
          end_range(found[stack.back()], time);
          stack.pop_back();
        }
        break;
      case RangeAction::kBegin:
        begun[record->id] = open();
        break;
      case RangeAction::kEnd:
        if (const auto range = begun.find(record->id); range != begun.end()) end_range(found[range->second], time);
        break;
      case RangeAction::kMark:
        if (record->meaning != raw::Meaning::kIteration) break;
        if (iteration != kNone) end_range(found[iteration], time);
        iteration = open();
        break;
      case RangeAction::kUnknown:
        break;
    }
  }
  std::erase_if(found, [](const GpuRange& range) { return range.name.empty(); });
  return found;
}

std::optional<TimeSpan> complete_iterations(const ProcessLog& process) {
  std::optional<TimeSpan> found;
  for (const FittedLog& file : process.files) {
    if (file.log.ops.empty()) continue;  // not a file of the framework
    std::map<std::uint64_t, std::int64_t> begun;
    for (const raw::Range& record : file.log.ranges) {
      if (record.action == raw::RangeAction::kBegin && record.meaning == raw::Meaning::kIteration)
        begun[record.id] = file.clock.common(record.time);
      const auto begin = begun.find(record.id);
      if (record.action != raw::RangeAction::kEnd || begin == begun.end()) continue;
      const std::int64_t end = file.clock.common(record.time);
      found = {found ? std::min(found->first, begin->second) : begin->second, found ? std::max(found->last, end) : end};
    }
  }
  return found;
}

}  // namespace tidepool
