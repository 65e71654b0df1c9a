// SQLite exports of Nsight Systems reports (nsys profile --trace=cuda,nvtx --cuda-memory-usage=true, then nsys export
// --type=sqlite). Kernels, copies, memsets and graphs become ops, in the order in which the host launched them; memory
// events become buffers; events and waits become orders between streams; NVTX ranges become marks, phases and modules.
// A report does not tell which buffers a kernel uses: the ops have no uses.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/builder.hpp"
#include "traces/import/blocks.hpp"
#include "traces/import/issue_order.hpp"
#include "traces/import/nsys_report.hpp"
#include "traces/import/period.hpp"
#include "traces/import/range_names.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/streams.hpp"
#include "traces/importer.hpp"
#include "traces/refuse.hpp"

namespace tidepool {
namespace {

constexpr const char* kLacksMemory =
    "memory events: this is a timeline only; record them with nsys profile --cuda-memory-usage=true";

/// What happens on the host. At the same time, what ends comes first, and what is launched last.
enum class Happening : std::uint8_t { kRangeEnd, kMemory, kRangeBegin, kSync, kOp };

struct Entry {
  std::int64_t time = 0;
  Happening happening = Happening::kOp;
  std::int64_t then = 0;   ///< of ops launched by one call, when the GPU began
  std::size_t record = 0;  ///< index into the report's list
  auto operator<=>(const Entry&) const = default;
};

class NsysImport {
 public:
  NsysImport(const NsysReport& report, std::optional<std::size_t> device) : report_{report} {
    check(device);
    for (std::size_t i = 0; i < report.ops.size(); ++i) {
      const NsysOp& op = report.ops[i];
      if (device && op.device != *device) continue;
      if (op.start || op.launch) add(op.launch.value_or(op.start.value_or(0)), Happening::kOp, i, op.start.value_or(0));
      if (!op.start) ++lost_;
    }
    for (std::size_t i = 0; i < report.memory.size(); ++i)
      if (!device || report.memory[i].device == *device) add(report.memory[i].time, Happening::kMemory, i);
    find_origin();
    for (std::size_t i = 0; i < report.syncs.size(); ++i) add(report.syncs[i].time, Happening::kSync, i);
    for (std::size_t i = 0; i < report.ranges.size(); ++i) {
      add(report.ranges[i].start, Happening::kRangeBegin, i);
      // One that ends as it begins would end before: at equal times, ends come first.
      if (report.ranges[i].end)
        add(std::max(*report.ranges[i].end, report.ranges[i].start + 1), Happening::kRangeEnd, i);
    }
    std::sort(entries_.begin(), entries_.end());
    name_streams();
  }

  Trace run() {
    TraceBuilder builder{stream_names_.empty() ? std::vector<std::string>{"0"} : stream_names_};
    builder_ = &builder;
    builder.losses().dropped_records = lost_;
    std::vector<LoggedBlock> events;
    for (const Entry& entry : entries_)
      if (entry.happening == Happening::kMemory) events.push_back(block_event(report_.memory[entry.record]));
    Blocks blocks{builder, events};
    if (!counts_iterations()) find_iterations();
    std::size_t next_event = 0;
    for (const Entry& entry : entries_) {
      if (entry.happening == Happening::kMemory)
        blocks.step(events[next_event++]);
      else if (entry.happening == Happening::kOp)
        run(report_.ops[entry.record]);
      else if (entry.happening == Happening::kSync)
        synchronise(report_.syncs[entry.record]);
      else
        range(entry);
    }
    builder.meta()["source"] = "nsys";
    builder.meta()["time"] = "measured";
    if (!report_.version.empty()) builder.meta()["capture"] = "Nsight Systems " + report_.version;
    if (!report_.gpu.empty()) builder.meta()["device"] = report_.gpu;
    if (!report_.has_memory) builder.meta()["lacks"] = kLacksMemory;
    return builder.finish();
  }

 private:
  void check(std::optional<std::size_t> device) const {
    if (!device) return;
    std::set<std::size_t> known;
    for (const NsysOp& op : report_.ops) known.insert(op.device);
    for (const NsysMemory& event : report_.memory) known.insert(event.device);
    if (known.empty()) refuse("no device {}; the report has no record of any", *device);
    if (!known.contains(*device)) {
      std::vector<std::string> names;
      for (const std::size_t number : known) names.push_back(std::to_string(number));
      refuse("no device {}; the report has {}", *device, fmt::format("{}", fmt::join(names, ", ")));
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
      if (entry.happening == Happening::kOp) first = std::min(first, report_.ops[entry.record].start.value_or(first));
    }
    if (first != kNever) origin_ = first;
  }

  /// Where the same name would stand for two streams, the later ones say their context and process.
  void name_streams() {
    const auto name = [&](const NsysStream& stream, std::uint16_t device) {
      if (stream_ids_.contains(stream) || stream.stream < 0) return;
      if (stream_names_.size() == kMostStreams) refuse("more than {} streams", kMostStreams);
      std::string text = stream_name(device, stream.stream);
      const auto taken = [&] { return !used_names_.insert(text).second; };
      if (taken()) {
        constexpr std::int64_t kMostPid = 0xffffff;
        text += fmt::format(" of context {} of process {}", stream.context, (stream.process >> 24) & kMostPid);
        while (taken()) text += "'";  // the same number in another container or virtual machine
      }
      stream_ids_.emplace(stream, StreamId{stream_names_.size()});
      processes_.insert(stream.process);
      stream_names_.push_back(std::move(text));
    };
    for (const Entry& entry : entries_)
      if (entry.happening == Happening::kOp) name(report_.ops[entry.record].stream, report_.ops[entry.record].device);
    for (const Entry& entry : entries_)
      if (entry.happening == Happening::kMemory)
        name(report_.memory[entry.record].stream, report_.memory[entry.record].device);
  }

  /// The first stream, if none is named or nothing runs on it.
  StreamId stream_id(const NsysStream& stream) const {
    const auto found = stream_ids_.find(stream);
    return found == stream_ids_.end() ? StreamId{0} : found->second;
  }

  LoggedBlock block_event(const NsysMemory& event) {
    LoggedBlock block;
    block.frees = event.frees;
    const auto [space, added] =
        spaces_.try_emplace({event.stream.process, event.device}, static_cast<std::uint32_t>(spaces_.size()));
    block.space = space->second;
    block.block.size = Bytes{event.size};
    block.block.address = event.address;
    block.block.device = event.device;
    block.block.stream = stream_id(event.stream);
    block.block.name = builder_->text(event.name);
    return block;
  }

  /// Whether ranges that are numbered tell the iterations.
  bool counts_iterations() const {
    return std::any_of(report_.ranges.begin(), report_.ranges.end(),
                       [](const NsysRange& range) { return names_iteration(range.name); });
  }

  /// Otherwise, the period of the ops' names does.
  void find_iterations() {
    std::map<std::string_view, std::uint32_t> ids;
    std::vector<std::uint32_t> names;
    for (const Entry& entry : entries_)
      if (entry.happening == Happening::kOp)
        names.push_back(
            ids.try_emplace(report_.ops[entry.record].name, static_cast<std::uint32_t>(ids.size())).first->second);
    const Period period = find_period(names);
    for (const PeriodicRun& run : period.runs)
      for (std::size_t at = run.first; at + period.length <= run.last; at += period.length) periods_.push_back(at);
  }

  void run(const NsysOp& record) {
    if (next_period_ < periods_.size() && periods_[next_period_] == next_op_)
      builder_->mark(MarkKind::kIteration, std::to_string(next_period_++));
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
    builder_->run(op, {});
    ++next_op_;
    for (const OpId before : order(record.stream).run(op.stream, builder_->last_op()))
      builder_->order(before, builder_->last_op());
  }

  /// Processes do not wait for each other.
  IssueOrder& order(const NsysStream& stream) { return orders_[stream.process]; }

  using Place = std::pair<std::int64_t, std::size_t>;  // of a range: when it began, and its index

  struct Recorded {
    StreamId stream;
    IssueOrder::Point point;
  };

  void synchronise(const NsysSync& sync) {
    const NsysStream& named = sync.stream;
    if (!processes_.contains(named.process)) return;  // nothing of it is in the trace
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

  /// Ranges are told apart by name, whichever thread they are of: PyTorch launches the backward pass from another one
  /// than the one that says so. The innermost is the one that began last.
  void range(const Entry& entry) {
    const NsysRange& range = report_.ranges[entry.record];
    const Place place{range.start, entry.record};
    const bool begins = entry.happening == Happening::kRangeBegin;
    const auto change = [&](auto& open, const auto& says) {
      if (begins)
        open.emplace(place, says);
      else
        open.erase(place);
    };
    if (names_iteration(range.name)) {
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
    if (const std::optional<Phase> phase = phase_named(range.name)) change(open_phases_, *phase);
    if (names_module(range.name)) change(open_modules_, builder_->text(range.name));
    builder_->mark(begins ? MarkKind::kRangeBegin : MarkKind::kRangeEnd, range.name);
  }

  const NsysReport& report_;
  std::vector<Entry> entries_;  // in the host's order
  std::int64_t origin_ = 0;
  std::int64_t lost_ = 0;
  std::map<NsysStream, StreamId> stream_ids_;
  std::vector<std::string> stream_names_;
  std::set<std::int64_t> processes_;  // that have streams
  std::set<std::string> used_names_;
  std::map<std::pair<std::int64_t, std::uint16_t>, std::uint32_t> spaces_;           // by process, device
  TraceBuilder* builder_ = nullptr;                                                  // of run()
  std::map<std::int64_t, IssueOrder> orders_;                                        // by process
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Recorded> events_;  // by process, context, event
  std::map<std::pair<std::int64_t, std::int64_t>, Recorded> records_;                // by process, sync id
  std::set<Place> open_iterations_;
  std::map<Place, Phase> open_phases_;
  std::map<Place, StringId> open_modules_;
  std::string ended_iteration_;       // the last one, if no op ran since
  std::vector<std::size_t> periods_;  // ops with which iterations begin
  std::size_t next_period_ = 0, next_op_ = 0;
};

Trace read(const Input& input, std::optional<std::size_t> device) {
  const NsysReport report = parse_nsys_report(input);
  try {
    return NsysImport{report, device}.run();
  } catch (const InputError& error) {
    throw error.at(input.path());
  }
}

/// The first page of a large file need not name any table; other databases are refused by what they lack.
int sniff_nsys(std::string_view head) {
  using namespace std::string_view_literals;
  if (!head.starts_with("SQLite format 3\0"sv)) return 0;
  return head.find("CUPTI_ACTIVITY_KIND") != std::string_view::npos ? 95 : 50;
}

const RegisterImporter kNsys{{"nsys",
                              "SQLite exports of Nsight Systems reports",
                              {".sqlite", ".sqlite3", ".db"},
                              sniff_nsys,
                              read_nsys,
                              read_nsys_device}};

}  // namespace

Trace read_nsys(const Input& input) { return read(input, std::nullopt); }

Trace read_nsys_device(const Input& input, std::size_t device) { return read(input, device); }

}  // namespace tidepool
