#include "tracer/lower/process_log.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "traces/base/refuse.hpp"

namespace tidepool {

namespace {

constexpr std::int64_t kMostTime = std::int64_t{1} << 61;  // ns: from 1970 to 2043; two times can be subtracted

bool in_range(std::int64_t time) { return -kMostTime <= time && time <= kMostTime; }

/// The context of each stream, by the stream's id. A record of a stream's creation may lack the context.
std::unordered_map<std::uint32_t, std::uint32_t> contexts_of_streams(std::span<const FittedLog> files) {
  std::unordered_map<std::uint32_t, std::uint32_t> contexts;
  const auto learn = [&](const auto& records) {
    for (const auto& record : records)
      if (record.context != raw::kNoId && record.stream != raw::kNoId)
        contexts.try_emplace(record.stream, record.context);
  };
  for (const FittedLog& file : files) learn(file.log.streams);
  for (const FittedLog& file : files) {
    learn(file.log.kernels);
    learn(file.log.copies);
    learn(file.log.memsets);
  }
  return contexts;
}

constexpr std::uint32_t kMostPrograms = 0xffffff;  // 24 bits, which fit beside a process id in a GpuStream

/// A file with its begin and its end on the common clock. The end is the latest of its clock readings, memory events,
/// launches, kernels and ops.
struct FileSpan {
  explicit FileSpan(const raw::Log& file)
      : log{&file}, begin{file.header.monotonic_raw != 0 ? file.header.monotonic_raw : file.header.time}, end{begin} {
    for (const raw::ClockReading& reading : file.clocks) end = std::max(end, reading.monotonic_raw);
    std::int64_t last = file.header.time;  // on the file's clock, which has the same order as the common one
    for (const raw::Memory& event : file.memory) last = std::max(last, event.time);
    for (const raw::FrameworkMemory& event : file.framework_memory) last = std::max(last, event.time);
    for (const raw::WithUses<raw::Launch>& launch : file.launches) last = std::max(last, launch.record.start);
    for (const raw::Kernel& kernel : file.kernels) last = std::max(last, kernel.end);
    for (const raw::WithUses<raw::FrameworkOp>& op : file.ops) last = std::max(last, op.record.end);
    if (last != file.header.time) end = std::max(end, ClockFit{file}.common(last));
  }

  const raw::Log* log;
  std::int64_t begin, end;
};

/// Whether the first of the following files belongs to another program than the known ones.
bool is_next_program(std::span<const FileSpan> known, std::span<const FileSpan> following) {
  const auto is_second = [&](const FileSpan& file) {
    return file.log->header.source != raw::Source::kUnknown &&
           std::any_of(known.begin(), known.end(),
                       [&](const FileSpan& one) { return one.log->header.source == file.log->header.source; });
  };
  const auto is_over = [&](const FileSpan& file) { return file.end < following.front().begin; };
  return is_second(following.front()) || (std::all_of(known.begin(), known.end(), is_over) &&
                                          std::any_of(following.begin(), following.end(), is_second));
}

}  // namespace

ClockFit::ClockFit(const raw::Log& log) : log_{log} {
  if (log.header.clock == raw::Clock::kMonotonicRaw) return;
  const auto add = [&](std::int64_t time, std::int64_t common) {
    if (in_range(time) && in_range(common)) readings_.push_back({time, common});
  };
  for (const raw::ClockReading& reading : log.clocks) add(reading.time, reading.monotonic_raw);
  // The header is less exact: its time is read at the first use of CUPTI, milliseconds before its times of the other
  // two clocks.
  if (readings_.empty() && log.header.monotonic_raw != 0) add(log.header.time, log.header.monotonic_raw);
  std::sort(readings_.begin(), readings_.end(), [](const Reading& a, const Reading& b) { return a.time < b.time; });
  // Keep only readings that are later, on both clocks, than the one kept before them. Any other reading means that a
  // clock was set back: no ascending line goes through it and the one before.
  std::vector<Reading> ascending;
  for (const Reading& reading : readings_)
    if (ascending.empty() || (reading.time > ascending.back().time && reading.common > ascending.back().common))
      ascending.push_back(reading);
  readings_ = std::move(ascending);
}

std::int64_t ClockFit::between(const Reading& a, const Reading& b, std::int64_t time) {
  __extension__ using Wide = __int128;
  const Wide product = Wide{time - a.time} * (b.common - a.common);
  return a.common + static_cast<std::int64_t>(product / (b.time - a.time));
}

std::int64_t ClockFit::common(std::int64_t time) const {
  if (!in_range(time)) refuse("{}: time {}; expected -2^61 to 2^61", log_.path, time);
  if (readings_.empty()) return time;
  const auto behind = std::upper_bound(readings_.begin(), readings_.end(), time,
                                       [](std::int64_t value, const Reading& reading) { return value < reading.time; });
  // All three numbers are from -2^61 to 2^61, so the result is within 64 bits.
  const auto beside = [&](const Reading& reading) { return time - reading.time + reading.common; };
  const std::int64_t result = behind == readings_.begin() ? beside(readings_.front())
                              : behind == readings_.end() ? beside(readings_.back())
                                                          : between(*(behind - 1), *behind, time);
  if (!in_range(result))
    refuse("{}: time {} is {} on the common clock; expected -2^61 to 2^61", log_.path, time, result);
  return result;
}

std::int64_t ClockFit::residual() const {
  std::int64_t most = 0;
  for (std::size_t i = 1; i + 1 < readings_.size(); ++i) {
    const std::int64_t line = between(readings_[i - 1], readings_[i + 1], readings_[i].time);
    most = std::max(most, std::abs(line - readings_[i].common));
  }
  return most;
}

void ProcessLog::index() {
  const std::unordered_map<std::uint32_t, std::uint32_t> contexts = contexts_of_streams(files);
  for (const FittedLog& file : files) {
    for (const raw::Api& call : file.log.apis) {
      if (call.correlation == 0) continue;
      const std::int64_t time = file.clock.common(call.start);
      const auto [entry, added] = launches.try_emplace(call.correlation, HostLaunch{time, call.thread});
      if (!added && time < entry->second.time)
        entry->second = {time, call.thread};  // of nested calls, the outer one counts
    }
    for (const raw::Stream& named : file.log.streams)
      if (named.handle != 0) {
        const auto known = contexts.find(named.stream);
        const bool look = named.context == raw::kNoId && known != contexts.end();
        streams.try_emplace(named.handle, stream(look ? known->second : named.context, named.stream));
      }
  }
  for (const FittedLog& file : files)
    for (const raw::WithUses<raw::Launch>& launch : file.log.launches) {
      const raw::Launch& record = launch.record;
      const HostLaunch found{file.clock.common(record.start), record.thread, &launch, &file.log};
      if (record.correlation != 0) {
        launches[record.correlation] = found;
        for (const std::uint32_t inside : {record.inner_correlation, record.driver_correlation})
          if (inside != 0) launches.try_emplace(inside, found);
      } else if (record.graph_node != 0) {
        graph_nodes[record.graph_node] = found;
      }
    }
}

GpuStream ProcessLog::stream(std::uint32_t context, std::uint32_t stream) const {
  const auto or_none = [](std::uint32_t id) { return id == raw::kNoId ? -1 : static_cast<std::int64_t>(id); };
  return {static_cast<std::int64_t>(process) << 24 | program, or_none(context), or_none(stream)};
}

const HostLaunch* ProcessLog::launch(std::uint32_t correlation) const {
  const auto found = launches.find(correlation);
  return correlation == 0 || found == launches.end() ? nullptr : &found->second;
}

std::vector<ProcessLog> by_process(std::span<const raw::Log> logs) {
  std::vector<std::vector<FileSpan>> processes;
  std::map<std::uint32_t, std::size_t> index;
  for (const raw::Log& log : logs) {
    const auto [entry, added] = index.try_emplace(log.header.process, processes.size());
    if (added) processes.emplace_back();
    processes[entry->second].emplace_back(log);
  }
  std::vector<ProcessLog> programs;
  for (std::vector<FileSpan>& files : processes) {
    std::stable_sort(files.begin(), files.end(),
                     [](const FileSpan& a, const FileSpan& b) { return a.begin < b.begin; });
    std::uint32_t program = 0;
    for (auto first = files.begin(), last = first; first != files.end(); first = last) {
      ProcessLog& log = programs.emplace_back(files.front().log->header.process, program++ & kMostPrograms);
      while (last != files.end() && (last == first || !is_next_program({first, last}, {last, files.end()})))
        log.files.emplace_back(*(last++)->log);
      if (last != files.end()) log.ends = ClockFit{*last->log}.common(last->log->header.time);
    }
  }
  for (ProcessLog& program : programs) program.index();
  return programs;
}

bool on_host(raw::MemoryKind kind) { return kind == raw::MemoryKind::kPageable || kind == raw::MemoryKind::kPinned; }

std::int64_t checked(const raw::Log& log, const char* what, std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse("{}: {} {}; expected less than 2^63", log.path, what, value);
  return static_cast<std::int64_t>(value);
}

}  // namespace tidepool
