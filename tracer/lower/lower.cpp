#include "tracer/lower/lower.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tracer/lower/framework_calls.hpp"
#include "tracer/lower/memory_events.hpp"
#include "tracer/lower/process_log.hpp"
#include "traces/base/refuse.hpp"
#include "traces/buffer_kinds.hpp"
#include "traces/iteration.hpp"
#include "traces/names.hpp"
#include "traces/op_names.hpp"

namespace tidepool {

namespace {

/// When the host launched an op or, if that was not recorded, when the op started.
Nanos time_of(const Op& op) { return op.launch >= Nanos{} ? op.launch : op.start; }

class Assembly {
 public:
  explicit Assembly(LoweredOps ops) : ops_{ops} { timeline_.what = "capture"; }

  LoweredRank run(std::span<const raw::Log> logs, std::optional<std::size_t> device) {
    for (const ProcessLog& process : by_process(logs)) add(process);
    for (const raw::Log& log : logs) add_losses(log);
    TraceBuilder builder = build_trace(timeline_, device);
    add_meta(logs, builder.meta());
    LoweredRank rank = with_collectives(builder.finish(), device);
    if (operators_ && ops_ == LoweredOps::kIterations) {
      const std::size_t count = complete_iterations(rank.trace);
      rank = iterations(std::move(rank), 0, count);
    }
    rank.trace = with_inferred_kinds(std::move(rank.trace));
    return rank;
  }

 private:
  void add(const ProcessLog& process) {
    for (const FittedLog& file : process.files) count(file.log);
    const FrameworkCalls calls{process, timeline_};
    const std::size_t before = timeline_.ops.size();
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    for (const FittedLog& file : process.files) {
      add_ops(process, file, calls);
      add_syncs(process, file);
      timeline_.losses.clock_residual_ns = std::max(timeline_.losses.clock_residual_ns, file.clock.residual());
    }
    if (timeline_.ops.size() == before)
      calls.add_as_ops(timeline_);
    else if (ops_ == LoweredOps::kOperators)
      use_operators(calls, before, {});
    else if (const std::optional<TimeSpan> time = complete_iterations(process);
             time && ops_ == LoweredOps::kIterations) {
      use_operators(calls, before, *time);
      end = time->last;
    }
    for (GpuMemory& event : memory_events(process, operators_))
      if (event.time <= end) timeline_.memory.push_back(std::move(event));
    if (operators_) use_whole_blocks();
    add_ranges(process);
  }

  /// Replaces the ops from `first` on, of one process, by the operators that launched them in `time`.
  void use_operators(const FrameworkCalls& calls, std::size_t first, TimeSpan time) {
    calls.replace_launches(timeline_, first, time);
    operators_ = true;
  }

  /// If the trace has the allocator's whole blocks as buffers, lets operators use the whole blocks of their tensors.
  void use_whole_blocks() {
    constexpr std::int64_t kBlock = 512;  // of PyTorch's allocator for GPUs
    const auto whole = [](const GpuMemory& event) {
      return event.event != BlockEvent::kAlloc || event.size % kBlock == 0;
    };
    if (!std::all_of(timeline_.memory.begin(), timeline_.memory.end(), whole)) return;
    for (GpuUse& use : timeline_.uses)
      if (use.address % kBlock == 0 && use.size <= std::numeric_limits<std::int64_t>::max() - kBlock)
        use.size = (use.size + kBlock - 1) / kBlock * kBlock;
  }

  /// Adds the ranges of a process, and iterations from the first process that has any. The last iteration ends when all
  /// processes that take part in it have ended it.
  void add_ranges(const ProcessLog& process) {
    std::vector<GpuRange> found = ranges(process);
    const auto is_iteration = [](const GpuRange& range) { return range.meaning == RangeMeaning::kIteration; };
    const auto last = std::find_if(timeline_.ranges.rbegin(), timeline_.ranges.rend(), is_iteration);
    if (last != timeline_.ranges.rend()) {
      std::optional<std::int64_t> end = last->end;
      for (const GpuRange& range : found)
        if (is_iteration(range) && range.end && last->end && range.start < *last->end) end = std::max(end, range.end);
      last->end = end;
      std::erase_if(found, is_iteration);
    }
    std::move(found.begin(), found.end(), std::back_inserter(timeline_.ranges));
  }

  LoweredRank with_collectives(Trace trace, std::optional<std::size_t> device) const {
    LoweredRank rank{std::move(trace), {}, {}};
    const std::vector<std::size_t> order = ops_in_order(timeline_, device);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const GpuOp& op = timeline_.ops[order[i]];
      const OpId id{i};
      if (i == 0) rank.begin = Nanos{op.launch.value_or(op.start.value_or(0))} - time_of(rank.trace.op(id));
      if (!op.collective) continue;
      rank.collectives.push_back(collectives_[*op.collective]);
      rank.collectives.back().op = id;
    }
    return rank;
  }

  /// Notes the recorder's facts about a kernel that is a rank's part of a collective.
  void note_collective(const raw::Log& log, const raw::Collective& record) {
    constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
    if (record.size > kMostBytes) refuse("{}: a collective of {} bytes; expected at most 1 PiB", log.path, record.size);
    RankCollective& known = collectives_.emplace_back();
    known.name = log.text(record.name);
    known.communicator = record.communicator;
    known.sequence = record.sequence;
    known.input = Bytes{static_cast<std::int64_t>(record.size)};
    if (record.peer != raw::kNoId) known.peer = record.peer;
  }

  /// Counts launches whose parameters were not read completely, and adds up the profiler's own time.
  void count(const raw::Log& log) {
    launches_ += log.launches.size();
    for (const raw::WithUses<raw::Launch>& launch : log.launches)
      unread_ += (launch.record.flags & (raw::kUsesIncomplete | raw::kNotScanned)) != 0;
    constexpr std::int64_t kLongest = std::int64_t{24} * 3600 * 1'000'000'000;  // limit for damaged records
    for (const raw::Overhead& overhead : log.overheads)
      if (overhead.start <= overhead.end && overhead.start >= 0 && overhead.end - overhead.start <= kLongest)
        overhead_ = std::min(overhead_ + Nanos{overhead.end - overhead.start}, Nanos{kLongest * 365});
  }

  void add_ops(const ProcessLog& process, const FittedLog& file, const FrameworkCalls& calls) {
    std::map<std::uint32_t, std::size_t> collectives;  // by correlation
    for (const raw::Collective& record : file.log.collectives) {
      collectives.emplace(record.correlation, collectives_.size());
      note_collective(file.log, record);
    }
    for (const raw::Kernel& record : file.log.kernels) {
      GpuOp op = op_of(process, file, calls, record);
      op.name = plain_name(file.log.text(record.name));
      if (names_collective(op.name)) op.kind = OpKind::kCollective;
      if (const auto known = collectives.find(record.correlation); known != collectives.end())
        op.collective = known->second;
      timeline_.ops.push_back(op);
    }
    for (const raw::Copy& record : file.log.copies) {
      if (record.copy == raw::CopyKind::kHtoH) continue;
      GpuOp op = op_of(process, file, calls, record);
      op.kind = OpKind::kCopy;
      op.name = copy_name(static_cast<std::size_t>(record.copy));
      if (op.uses.empty()) {
        const std::size_t first = timeline_.uses.size();
        if (record.from != 0 && !on_host(record.from_memory)) use(file, record.from, record.size, Access::kRead);
        if (record.to != 0 && !on_host(record.to_memory)) use(file, record.to, record.size, Access::kWrite);
        op.uses = {first, timeline_.uses.size()};
      }
      timeline_.ops.push_back(op);
    }
    for (const raw::Memset& record : file.log.memsets) {
      GpuOp op = op_of(process, file, calls, record);
      op.kind = OpKind::kMemset;
      op.name = "memset";
      if (op.uses.empty() && record.address != 0) {
        const std::size_t first = timeline_.uses.size();
        use(file, record.address, record.size, Access::kWrite);
        op.uses = {first, timeline_.uses.size()};
      }
      timeline_.ops.push_back(op);
    }
  }

  void use(const FittedLog& file, std::uint64_t address, std::uint64_t size, Access access) {
    timeline_.uses.push_back(
        {checked(file.log, "address", address), checked(file.log, "size", size), access, Evidence::kCopy});
  }

  template <class Record>
  GpuOp op_of(const ProcessLog& process, const FittedLog& file, const FrameworkCalls& calls, const Record& record) {
    GpuOp op;
    op.stream = process.stream(record.context, record.stream);
    op.device = record.device > 0xffff ? std::uint16_t{0} : static_cast<std::uint16_t>(record.device);
    if (record.start != 0 && record.end >= record.start) {
      op.start = file.clock.common(record.start);
      file.clock.common(record.end);  // refuses times that are out of range
      op.duration = record.end - record.start;
    }
    const HostLaunch* const host = process.launch(record.correlation);
    if (host != nullptr) op.launch = host->time;
    if (!file.log.launches.empty() && record.graph_node == 0) {
      ++launched_;
      not_seen_ += host == nullptr;
    }
    const HostLaunch* looked_at = host;
    if (record.graph_node != 0)
      if (const auto node = process.graph_nodes.find(record.graph_node); node != process.graph_nodes.end())
        looked_at = &node->second;
    if (looked_at != nullptr && looked_at->launch != nullptr) {
      op.uses = add_uses(*looked_at->log, *looked_at->launch, timeline_);
      timeline_.losses.unknown_pointers += looked_at->launch->record.unknown_pointers;
    }
    op.call = calls.of(record.correlation, host);
    return op;
  }

  void add_syncs(const ProcessLog& process, const FittedLog& file) {
    const auto id = [](std::uint32_t event) { return event == raw::kNoId ? -1 : static_cast<std::int64_t>(event); };
    for (const raw::EventRecord& record : file.log.event_records) {
      const HostLaunch* const host = process.launch(record.correlation);
      if (record.time == 0 && host == nullptr) continue;
      GpuSync sync;
      sync.records = true;
      sync.time = record.time != 0 ? file.clock.common(record.time) : host->time;
      sync.stream = process.stream(record.context, record.stream);
      sync.event = id(record.event);
      sync.sync_id = static_cast<std::int64_t>(record.sync_id);
      timeline_.syncs.push_back(sync);
    }
    for (const raw::Sync& record : file.log.syncs) {
      if (record.result != 0) continue;  // a query whose answer was "not ready"
      using raw::SyncKind;
      GpuSync sync;
      sync.time = file.clock.common(record.sync == SyncKind::kStreamWaitsEvent ? record.start : record.end);
      const bool of_stream = record.sync == SyncKind::kStreamWaitsEvent || record.sync == SyncKind::kStream;
      const bool of_event = record.sync == SyncKind::kStreamWaitsEvent || record.sync == SyncKind::kEvent;
      if (!of_stream && !of_event && record.sync != SyncKind::kContext) continue;
      sync.stream = process.stream(record.context, of_stream ? record.stream : raw::kNoId);
      sync.event = of_event ? id(record.event) : -1;
      sync.sync_id = static_cast<std::int64_t>(record.sync_id);
      timeline_.syncs.push_back(sync);
    }
  }

  /// The readable form of a kernel's name. Results are kept, since most names occur many times.
  std::string_view plain_name(const std::string& name) {
    const auto [entry, added] = plain_names_.try_emplace(name);
    if (added) entry->second = kernel_name(name);
    return entry->second;
  }

  void add_losses(const raw::Log& log) {
    Losses& losses = timeline_.losses;
    const auto add = [&](std::int64_t& count, std::uint64_t more) {
      constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
      count = static_cast<std::int64_t>(std::min(kMost, static_cast<std::uint64_t>(count) + std::min(kMost, more)));
    };
    add(losses.dropped_records, log.header.lost_records);
    for (const raw::Loss& loss : log.losses) {
      // Kernels without time are counted elsewhere. The header has the records that the writer lost.
      if (loss.loss == raw::LossKind::kDroppedRecords) add(losses.dropped_records, loss.count);
      if (loss.loss == raw::LossKind::kUnknownPointers) add(losses.unknown_pointers, loss.count);
      if (loss.loss == raw::LossKind::kUnmatchedFrees) add(losses.unmatched_frees, loss.count);
    }
  }

  void add_meta(std::span<const raw::Log> logs, std::map<std::string, std::string>& meta) const {
    std::set<std::string_view> sources;
    std::set<std::string> gpus;
    std::uint64_t cut_off = 0;
    std::size_t unfinished = 0;
    for (const raw::Log& log : logs) {
      sources.insert(word(log.header.source));
      for (const raw::Info& info : log.infos) meta[log.text(info.key)] = log.text(info.value);
      for (const raw::DeviceInfo& device : log.devices) gpus.insert(log.text(device.name));
      cut_off += log.cut_off_bytes;
      unfinished += log.header.closed != 1;
    }
    meta["source"] = "raw";
    meta.try_emplace("time", "measured");  // a recorder without a device has set "estimated"
    meta["capture"] = fmt::format("{}", fmt::join(sources, "+"));
    if (overhead_ > Nanos{}) meta["profiler_overhead"] = to_text(overhead_);
    if (not_seen_ > 0)
      meta["launches_not_seen"] = fmt::format("{} of {} kernels, copies and memsets", not_seen_, launched_);
    if (unread_ > 0)
      meta["lacks"] = fmt::format("what {} of {} launches use: their parameters were not read", unread_, launches_);
    if (gpus.size() == 1 && !gpus.begin()->empty()) meta["device"] = *gpus.begin();
    if (unfinished > 0 || cut_off > 0)
      meta["recovered"] =
          fmt::format("what was written before the job ended: {} of {} files unfinished, {} bytes cut off", unfinished,
                      logs.size(), cut_off);
  }

  GpuTimeline timeline_;
  std::vector<RankCollective> collectives_;
  std::size_t launches_ = 0, unread_ = 0;
  std::size_t launched_ = 0, not_seen_ = 0;  // ops outside of graphs: all, and those whose launch was not recorded
  Nanos overhead_;
  LoweredOps ops_;
  bool operators_ = false;  // the ops are operators
  std::map<std::string, std::string> plain_names_;
};

}  // namespace

Trace lower(std::span<const raw::Log> logs, std::optional<std::size_t> device, LoweredOps ops) {
  if (logs.empty()) refuse("no capture files");
  return Assembly{ops}.run(logs, device).trace;
}

LoweredRank lower_rank(std::span<const raw::Log> logs, LoweredOps ops) {
  if (logs.empty()) refuse("no capture files");
  return Assembly{ops}.run(logs, {});
}

LoweredRank iterations(LoweredRank rank, std::size_t first, std::size_t count) {
  const auto [begin, end] = ops_of_iterations(rank.trace, first, count);
  LoweredRank cut{iterations(rank.trace, first, count), rank.begin, {}};
  if (begin < end) cut.begin += time_of(rank.trace.op(OpId{begin})) - time_of(cut.trace.op(OpId{std::size_t{0}}));
  for (RankCollective& each : rank.collectives)
    if (each.op.index() >= begin && each.op.index() < end) {
      each.op = OpId{each.op.index() - begin};
      cut.collectives.push_back(std::move(each));
    }
  return cut;
}

std::string kernel_name(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) return std::string{mangled};
  std::string_view rest = mangled.substr(2);
  const bool nested = rest.starts_with("N");
  if (nested) rest.remove_prefix(1);
  if (nested && rest.starts_with("St")) rest.remove_prefix(2);  // std
  std::string name = nested && mangled.substr(3).starts_with("St") ? "std" : "";
  const auto has_part = [&] {
    if (rest.starts_with("L")) rest.remove_prefix(1);  // the part is local to one file
    return !rest.empty() && rest.front() >= '0' && rest.front() <= '9';
  };
  while (has_part()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (error != std::errc{} || length > rest.size()) return std::string{mangled};
    const std::string_view part = rest.substr(0, length);
    if (!name.empty()) name += "::";
    name += part.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : part;
    rest.remove_prefix(length);
    if (!nested) break;
  }
  return name.empty() ? std::string{mangled} : name;
}

}  // namespace tidepool
