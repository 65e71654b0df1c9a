#include "tracer/lower/framework_calls.hpp"

#include <algorithm>

#include "traces/base/refuse.hpp"

namespace tidepool {
namespace {

OpKind kind_of(raw::Work work) {
  switch (work) {
    case raw::Work::kCopy:
      return OpKind::kCopy;
    case raw::Work::kSource:
      return OpKind::kSource;
    case raw::Work::kHostWait:
      return OpKind::kHostWait;
    default:
      return OpKind::kKernel;
  }
}

/// Whether the recorder estimated the times of its operators.
bool priced(const raw::Log& log) {
  return std::any_of(log.infos.begin(), log.infos.end(),
                     [&](const raw::Info& info) { return log.text(info.key) == "times"; });
}

std::int64_t checked_estimate(const raw::Log& log, std::int64_t estimate) {
  constexpr std::int64_t kLongest = std::int64_t{24} * 3600 * 1'000'000'000;
  if (estimate < 0 || estimate > kLongest)
    refuse("{}: estimate {}; expected 0 to {} ns, a day", log.path, estimate, kLongest);
  return estimate;
}

}  // namespace

FrameworkCalls::FrameworkCalls(const ProcessLog& process, GpuTimeline& timeline) : process_{process} {
  static_assert(static_cast<int>(raw::Phase::kOptimizer) == static_cast<int>(Phase::kOptimizer));
  for (const FittedLog& file : process.files) {
    const bool has_estimates = priced(file.log);
    for (const raw::WithUses<raw::FrameworkOp>& op : file.log.ops) {
      const raw::FrameworkOp& record = op.record;
      GpuCall call;
      call.uses = add_uses(file.log, op, timeline);
      call.module = file.log.text(record.module);
      call.line = file.log.text(record.line);
      call.phase = static_cast<Phase>(record.phase);
      call.random = record.random != 0;
      call.kind = kind_of(record.work);
      Call place;
      place.start = file.clock.common(record.start);
      place.end = std::max(place.start, file.clock.common(record.end));
      place.index = timeline.calls.size();
      // Launches that PyTorch did not dispatch have no price.
      if (has_estimates && record.uses > 0) place.estimate = checked_estimate(file.log, record.estimate);
      place.log = &file.log;
      place.record = &record;
      threads_[record.thread].push_back(place);
      if (record.id != 0) by_id_.try_emplace(record.id, timeline.calls.size());
      timeline.calls.push_back(call);
    }
  }
  for (auto& [thread, calls] : threads_) {
    std::stable_sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    });
    for (std::size_t i = 1; i < calls.size(); ++i) {
      std::size_t around = i - 1;
      while (around != kNoCall && calls[around].end < calls[i].end) around = calls[around].around;
      calls[i].around = around;
    }
  }
  for (const FittedLog& file : process.files)
    for (const raw::External& external : file.log.externals)
      if (const auto found = by_id_.find(external.id); found != by_id_.end())
        by_correlation_[external.correlation] = found->second;
}

std::optional<std::size_t> FrameworkCalls::of(std::uint32_t correlation, const HostLaunch* launch) const {
  if (const auto pushed = by_correlation_.find(correlation); pushed != by_correlation_.end()) return pushed->second;
  if (launch == nullptr) return {};
  const auto thread = threads_.find(launch->thread);
  if (thread == threads_.end()) return {};
  const std::vector<Call>& calls = thread->second;
  const auto behind = std::upper_bound(calls.begin(), calls.end(), launch->time,
                                       [](std::int64_t time, const Call& call) { return time < call.start; });
  std::size_t at = static_cast<std::size_t>(behind - calls.begin()) - 1;  // kNoCall if no call began before
  while (at != kNoCall && calls[at].end < launch->time) at = calls[at].around;
  if (at == kNoCall) return {};
  return calls[at].index;
}

void FrameworkCalls::add_as_ops(GpuTimeline& timeline) const {
  for (const auto& [thread, calls] : threads_)
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Call& call = calls[i];
      if (!innermost(calls, i)) continue;  // an operator that calls others leaves the work to them
      GpuOp op;
      op.name = call.log->text(call.record->name);
      op.stream = process_.stream(raw::kNoId, 0);
      op.start = op.launch = call.start;
      op.kind = timeline.calls[call.index].kind;
      op.duration = call.estimate.value_or(call.end - call.start);
      op.call = call.index;
      timeline.ops.push_back(op);
    }
}

void FrameworkCalls::add(Work& work, const GpuOp& op, const GpuTimeline& timeline) {
  if (!work.any) {
    work.any = true;
    work.op.stream = op.stream;
    work.op.device = op.device;
  }
  if (op.start) work.op.start = std::min(work.op.start.value_or(*op.start), *op.start);
  if (op.launch) work.op.launch = std::max(work.op.launch.value_or(*op.launch), *op.launch);
  work.op.duration += op.duration;
  for (std::size_t i = op.uses.first; i < op.uses.last; ++i) work.uses.push_back(timeline.uses[i]);
}

void FrameworkCalls::replace_launches(GpuTimeline& timeline, std::size_t first, TimeSpan time) const {
  std::vector<Work> works(timeline.calls.size());
  for (const auto& [thread, calls] : threads_)
    for (std::size_t i = 0; i < calls.size(); ++i)
      works[calls[i].index].used = innermost(calls, i) && time.has(calls[i].start);
  std::vector<GpuOp> others;
  std::optional<GpuStream> stream;
  for (std::size_t i = first; i < timeline.ops.size(); ++i) {
    const GpuOp& op = timeline.ops[i];
    if (!time.has(op.launch.value_or(op.start.value_or(0)))) continue;
    // Other ranks take part in a collective: it stays an op.
    if (op.kind == OpKind::kCollective || !op.call || !works[*op.call].used) {
      others.push_back(op);
      continue;
    }
    add(works[*op.call], op, timeline);
    if (!stream) stream = op.stream;
  }
  timeline.ops.resize(first);
  timeline.ops.insert(timeline.ops.end(), others.begin(), others.end());
  for (const auto& [thread, calls] : threads_)
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Call& call = calls[i];
      Work& work = works[call.index];
      if (!work.used) continue;
      GpuOp op = work.op;
      op.name = call.log->text(call.record->name);
      op.kind = timeline.calls[call.index].kind;
      op.duration = call.estimate.value_or(op.duration);
      if (!work.any) op.stream = stream.value_or(process_.stream(raw::kNoId, 0));
      if (!op.launch) op.launch = call.end;
      // The recorder may split an operator into two: the first takes no time, and the second begins 1 ns later. Then
      // the first comes just before the second's end in the order, so the allocations of both come before the first.
      if (call.start == call.end && i + 1 < calls.size() && calls[i + 1].start == call.end + 1)
        op.launch = calls[i + 1].end - 1;
      if (!op.start) op.start = op.launch;
      op.call = call.index;
      op.whole_call = !timeline.calls[call.index].uses.empty();  // without: its launches tell what it uses
      op.uses = {timeline.uses.size(), timeline.uses.size() + work.uses.size()};
      timeline.uses.insert(timeline.uses.end(), work.uses.begin(), work.uses.end());
      timeline.ops.push_back(op);
    }
}

}  // namespace tidepool
