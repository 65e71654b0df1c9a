#include "traces/import/gpu_timeline.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "traces/base/refuse.hpp"
#include "traces/import/blocks.hpp"
#include "traces/import/forward_steps.hpp"
#include "traces/import/issue_order.hpp"
#include "traces/import/launch_uses.hpp"
#include "traces/import/recorded_names.hpp"
#include "traces/import/seen_memory.hpp"

namespace tidepool {
namespace {

/// Kinds of events of the host. At equal times, ends come first, and launches last.
enum class Happening : std::uint8_t { kRangeEnd, kMemory, kRangeBegin, kSync, kOp };

struct Entry {
  std::int64_t time = 0;
  Happening happening = Happening::kOp;
  std::int64_t then = 0;   ///< of an op: its start on the GPU, to order the ops that one call launched
  std::size_t record = 0;  ///< index into the timeline's list
  auto operator<=>(const Entry&) const = default;
};

class TimelineTrace {
 public:
  TimelineTrace(const GpuTimeline& timeline, std::optional<std::size_t> device)
      : timeline_{timeline},
        has_marks_{std::any_of(timeline.ranges.begin(), timeline.ranges.end(), is_iteration)},
        uses_{timeline} {
    check(device);
    for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
      const GpuOp& op = timeline.ops[i];
      if (device && op.device != *device) continue;
      if (op.start || op.launch) add(op.launch.value_or(op.start.value_or(0)), Happening::kOp, i, op.start.value_or(0));
      if (!op.start) ++lost_;
    }
    for (std::size_t i = 0; i < timeline.memory.size(); ++i)
      if (!device || timeline.memory[i].device == *device) add(timeline.memory[i].time, Happening::kMemory, i);
    find_origin();
    for (std::size_t i = 0; i < timeline.syncs.size(); ++i) add(timeline.syncs[i].time, Happening::kSync, i);
    for (std::size_t i = 0; i < timeline.ranges.size(); ++i) {
      add(timeline.ranges[i].start, Happening::kRangeBegin, i);
      // A range without length would end before it begins, since ends come first at equal times.
      if (timeline.ranges[i].end)
        add(std::max(*timeline.ranges[i].end, timeline.ranges[i].start + 1), Happening::kRangeEnd, i);
    }
    std::sort(entries_.begin(), entries_.end());
    name_streams();
  }

  std::vector<std::size_t> ops() const {
    std::vector<std::size_t> ops;
    for (const Entry& entry : entries_)
      if (entry.happening == Happening::kOp) ops.push_back(entry.record);
    return ops;
  }

  TraceBuilder run() {
    TraceBuilder builder{stream_names_.empty() ? std::vector<std::string>{"0"} : stream_names_};
    builder_ = &builder;
    builder.losses() = timeline_.losses;
    builder.losses().dropped_records += lost_;
    std::vector<LoggedBlock> events;
    for (const Entry& entry : entries_)
      if (entry.happening == Happening::kMemory) events.push_back(block_event(timeline_.memory[entry.record]));
    Blocks blocks{builder, events};
    blocks_ = &blocks;
    if (!counts_iterations()) find_iterations();
    std::size_t next_event = 0;
    for (const Entry& entry : entries_) {
      if (entry.happening == Happening::kMemory)
        blocks.step(events[next_event++]);
      else if (entry.happening == Happening::kOp)
        run(timeline_.ops[entry.record]);
      else if (entry.happening == Happening::kSync)
        synchronise(timeline_.syncs[entry.record]);
      else
        range(entry);
    }
    return builder;
  }

 private:
  void check(std::optional<std::size_t> device) const {
    if (!device) return;
    std::set<std::size_t> known;
    for (const GpuOp& op : timeline_.ops) known.insert(op.device);
    for (const GpuMemory& event : timeline_.memory) known.insert(event.device);
    if (known.empty()) refuse("no device {}; the {} has no record of any", *device, timeline_.what);
    if (!known.contains(*device)) {
      std::vector<std::string> names;
      for (const std::size_t number : known) names.push_back(std::to_string(number));
      refuse("no device {}; the {} has {}", *device, timeline_.what, fmt::format("{}", fmt::join(names, ", ")));
    }
  }

  void add(std::int64_t time, Happening happening, std::size_t record, std::int64_t then = 0) {
    entries_.push_back({time, happening, then, record});
  }

  /// The trace begins with the first launch, op or memory event. Marks have no time of their own.
  void find_origin() {
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    std::int64_t first = kNever;
    for (const Entry& entry : entries_) {
      first = std::min(first, entry.time);
      if (entry.happening == Happening::kOp) first = std::min(first, timeline_.ops[entry.record].start.value_or(first));
    }
    if (first != kNever) origin_ = first;
  }

  /// Names the streams. If two would have the same name, the later one also has its context and process in its name.
  void name_streams() {
    const auto name = [&](const GpuStream& stream, std::uint16_t device) {
      if (stream_ids_.contains(stream) || stream.stream < 0) return;
      if (stream_names_.size() == kMostStreams) refuse("more than {} streams", kMostStreams);
      std::string text = stream_name(device, stream.stream);
      const auto taken = [&] { return !used_names_.insert(text).second; };
      if (taken()) {
        constexpr std::int64_t kMostPid = 0xffffff;
        text += fmt::format(" of context {} of process {}", stream.context, (stream.process >> 24) & kMostPid);
        while (taken()) text += "'";  // the same process id in another container or machine
      }
      stream_ids_.emplace(stream, StreamId{stream_names_.size()});
      processes_.insert(stream.process);
      stream_names_.push_back(std::move(text));
    };
    for (const Entry& entry : entries_)
      if (entry.happening == Happening::kOp)
        name(timeline_.ops[entry.record].stream, timeline_.ops[entry.record].device);
    for (const Entry& entry : entries_)
      if (entry.happening == Happening::kMemory)
        name(timeline_.memory[entry.record].stream, timeline_.memory[entry.record].device);
  }

  /// The id of a stream; that of the first stream if `stream` is none, or one without ops and memory events.
  StreamId stream_id(const GpuStream& stream) const {
    const auto found = stream_ids_.find(stream);
    return found == stream_ids_.end() ? StreamId{0} : found->second;
  }

  LoggedBlock block_event(const GpuMemory& event) {
    LoggedBlock block;
    block.event = event.event;
    const auto [space, added] =
        spaces_.try_emplace({event.stream.process, event.device}, static_cast<std::uint32_t>(spaces_.size()));
    block.space = space->second;
    block.block.size = Bytes{event.size};
    block.block.address = event.address;
    block.block.device = event.device;
    block.block.kind = event.kind;
    block.block.stream = stream_id(event.stream);
    block.block.name = builder_->text(event.name);
    return block;
  }

  static bool is_iteration(const GpuRange& range) { return range.meaning == RangeMeaning::kIteration; }

  /// Whether a range is an iteration. If a recorder marks iterations, the job's own ranges with numbers are none: they
  /// begin and end at other moments.
  bool counts(const GpuRange& range) const {
    return is_iteration(range) ||
           (!has_marks_ && range.meaning == RangeMeaning::kByName && names_iteration(range.name));
  }

  /// Whether ranges mark the iterations.
  bool counts_iterations() const {
    return std::any_of(timeline_.ranges.begin(), timeline_.ranges.end(), [&](const GpuRange& r) { return counts(r); });
  }

  /// Finds iterations by the repetition of ops and by updates of weights, if no ranges count iterations.
  void find_iterations() {
    std::map<std::string_view, std::uint32_t> ids;
    std::vector<std::uint32_t> names;
    SeenMemory memory{timeline_};
    for (const Entry& entry : entries_) {
      if (entry.happening == Happening::kMemory) {
        memory.change(timeline_.memory[entry.record]);
      } else if (entry.happening == Happening::kOp) {
        const GpuOp& op = timeline_.ops[entry.record];
        names.push_back(ids.try_emplace(op.name, static_cast<std::uint32_t>(ids.size())).first->second);
        memory.run(op);
      }
    }
    steps_ = find_steps(names, memory.live_bytes());
    if (const auto updates = find_updates(names.size(), memory.uses(), memory.block_bytes()); !updates.empty())
      steps_ = steps_with_updates(names, std::move(steps_), updates);
    else
      steps_ = divided_forward_steps(names, std::move(steps_), memory.uses(), memory.block_bytes());
  }

  /// Marks the found step that begins with the next op, and notes the one that ends before it.
  void mark_found_step() {
    if (next_step_ > 0 && steps_[next_step_ - 1].last == next_op_) ended_iteration_ = std::to_string(next_step_ - 1);
    if (next_step_ < steps_.size() && steps_[next_step_].first == next_op_) {
      builder_->mark(MarkKind::kIteration, std::to_string(next_step_++));
      ended_iteration_.clear();
    }
    ++next_op_;
  }

  void run(const GpuOp& record) {
    mark_found_step();
    if (!ended_iteration_.empty()) {
      builder_->mark(MarkKind::kIteration, "after " + ended_iteration_);
      ended_iteration_.clear();
    }
    Op op;
    op.name = builder_->text(record.name);
    op.kind = record.kind;
    op.stream = stream_id(record.stream);
    op.duration = Nanos{record.duration};
    if (record.start) op.start = Nanos{*record.start - origin_};
    if (record.launch) op.launch = Nanos{*record.launch - origin_};
    if (record.start && record.launch)
      builder_->losses().clock_residual_ns =
          std::max(builder_->losses().clock_residual_ns, *record.launch - *record.start);
    if (!open_phases_.empty()) op.phase = open_phases_.rbegin()->second;
    if (!open_modules_.empty()) op.module = open_modules_.rbegin()->second;
    if (record.call) {
      const GpuCall& call = timeline_.calls[*record.call];
      if (call.phase != Phase::kUnknown) op.phase = call.phase;
      if (!call.module.empty()) op.module = builder_->text(call.module);
      if (!call.line.empty()) op.line = builder_->text(call.line);
      op.random = call.random;
    }
    builder_->run(op, uses_.of(*builder_, record, [&](std::int64_t address) { return find(record, address); }));
    for (const OpId before : order(record.stream).run(op.stream, builder_->last_op()))
      builder_->order(before, builder_->last_op());
  }

  /// The buffer at an address of the op's process, on the op's device or else on another one (peer access).
  std::optional<BufferId> find(const GpuOp& op, std::int64_t address) const {
    const auto own = spaces_.find({op.stream.process, op.device});
    if (own != spaces_.end())
      if (const std::optional<BufferId> found = blocks_->find(own->second, address)) return found;
    for (auto peer = spaces_.lower_bound({op.stream.process, 0});
         peer != spaces_.end() && peer->first.first == op.stream.process; ++peer)
      if (const std::optional<BufferId> found = blocks_->find(peer->second, address)) return found;
    return {};
  }

  /// The order of a process; processes do not wait for each other.
  IssueOrder& order(const GpuStream& stream) { return orders_[stream.process]; }

  using Place = std::pair<std::int64_t, std::size_t>;  // of a range: when it began, and its index

  struct Recorded {
    StreamId stream;
    IssueOrder::Point point;
  };

  void synchronise(const GpuSync& sync) {
    const GpuStream& named = sync.stream;
    if (!processes_.contains(named.process)) return;  // the trace has nothing of this process
    const std::tuple event{named.process, named.context, sync.event};
    const std::pair id{named.process, sync.sync_id};
    const auto stream = stream_ids_.find(named);
    IssueOrder& order = this->order(named);
    if (sync.records) {
      const Recorded now =
          stream == stream_ids_.end() ? Recorded{} : Recorded{stream->second, order.point(stream->second)};
      events_[event] = now;
      if (sync.sync_id != 0) records_[id] = now;
      return;
    }
    if (sync.event < 0) {
      for (const auto& [other, other_id] : stream_ids_)
        if (other.process == named.process && other.context == named.context &&
            (named.stream < 0 || named.stream == other.stream))
          order.host_wait(other_id, order.point(other_id));
      return;
    }
    const auto by_event = events_.find(event);
    const auto by_id = sync.sync_id == 0 ? records_.end() : records_.find(id);
    if (by_id == records_.end() && by_event == events_.end()) return;
    const Recorded& waited = by_id != records_.end() ? by_id->second : by_event->second;
    if (!waited.point.valid()) return;
    if (named.stream < 0)
      order.host_wait(waited.stream, waited.point);
    else if (stream != stream_ids_.end())
      order.wait(stream->second, waited.stream, waited.point);
  }

  /// Begins or ends a range. The thread of a range is ignored, since PyTorch launches the backward pass from another
  /// thread than that of the range. The innermost range is the one that began last.
  void range(const Entry& entry) {
    const GpuRange& range = timeline_.ranges[entry.record];
    const Place place{range.start, entry.record};
    const bool begins = entry.happening == Happening::kRangeBegin;
    const auto change = [&](auto& open, const auto& says) {
      if (begins)
        open.emplace(place, says);
      else
        open.erase(place);
    };
    if (counts(range)) {
      if (begins && open_iterations_.empty()) {
        builder_->mark(MarkKind::kIteration, range.name);
        ended_iteration_.clear();
      }
      if (begins)
        open_iterations_.insert(place);
      else
        open_iterations_.erase(place);
      if (!begins && open_iterations_.empty()) ended_iteration_ = range.name;
    }
    const bool by_name = range.meaning == RangeMeaning::kByName;
    if (by_name || range.meaning == RangeMeaning::kPhase)
      if (const std::optional<Phase> phase = phase_named(range.name)) change(open_phases_, *phase);
    if (range.meaning == RangeMeaning::kModule || (by_name && names_module(range.name)))
      change(open_modules_, builder_->text(range.name));
    builder_->mark(begins ? MarkKind::kRangeBegin : MarkKind::kRangeEnd, range.name);
  }

  const GpuTimeline& timeline_;
  bool has_marks_;  // some ranges have the meaning of an iteration
  LaunchUses uses_;
  std::vector<Entry> entries_;  // in the host's order
  std::int64_t origin_ = 0;
  std::int64_t lost_ = 0;
  std::map<GpuStream, StreamId> stream_ids_;
  std::vector<std::string> stream_names_;
  std::set<std::int64_t> processes_;  // that have streams
  std::set<std::string> used_names_;
  std::map<std::pair<std::int64_t, std::uint16_t>, std::uint32_t> spaces_;           // by process, device
  TraceBuilder* builder_ = nullptr;                                                  // of run()
  const Blocks* blocks_ = nullptr;                                                   // of run()
  std::map<std::int64_t, IssueOrder> orders_;                                        // by process
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Recorded> events_;  // by process, context, event
  std::map<std::pair<std::int64_t, std::int64_t>, Recorded> records_;                // by process, sync id
  std::set<Place> open_iterations_;
  std::map<Place, Phase> open_phases_;
  std::map<Place, StringId> open_modules_;
  std::string ended_iteration_;   // the iteration that ended last, if no op ran since
  std::vector<FoundStep> steps_;  // iterations as ranges of ops, if no range of the host marks them
  std::size_t next_step_ = 0, next_op_ = 0;
};

}  // namespace

TraceBuilder build_trace(const GpuTimeline& timeline, std::optional<std::size_t> device) {
  return TimelineTrace{timeline, device}.run();
}

std::vector<std::size_t> ops_in_order(const GpuTimeline& timeline, std::optional<std::size_t> device) {
  return TimelineTrace{timeline, device}.ops();
}

}  // namespace tidepool
