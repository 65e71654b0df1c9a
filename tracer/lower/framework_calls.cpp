#include "tracer/lower/framework_calls.hpp"

#include <algorithm>

#include "traces/refuse.hpp"

namespace tidepool {

FrameworkCalls::FrameworkCalls(const ProcessLog& process, GpuTimeline& timeline) : process_{process} {
  static_assert(static_cast<int>(raw::Phase::kOptimizer) == static_cast<int>(Phase::kOptimizer));
  for (const FittedLog& file : process.files)
    for (const raw::WithUses<raw::FrameworkOp>& op : file.log.ops) {
      const raw::FrameworkOp& record = op.record;
      GpuCall call;
      call.uses = add_uses(file.log, op, timeline);
      call.module = file.log.text(record.module);
      call.phase = static_cast<Phase>(record.phase);
      call.random = record.random != 0;
      Call place;
      place.start = file.clock.common(record.start);
      place.end = std::max(place.start, file.clock.common(record.end));
      place.index = timeline.calls.size();
      place.log = &file.log;
      place.record = &record;
      threads_[record.thread].push_back(place);
      if (record.id != 0) by_id_.try_emplace(record.id, timeline.calls.size());
      timeline.calls.push_back(call);
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
  std::size_t at = static_cast<std::size_t>(behind - calls.begin()) - 1;  // kNoCall if there is none before
  while (at != kNoCall && calls[at].end < launch->time) at = calls[at].around;
  if (at == kNoCall) return {};
  return calls[at].index;
}

void FrameworkCalls::add_as_ops(GpuTimeline& timeline) const {
  for (const auto& [thread, calls] : threads_)
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Call& call = calls[i];
      if (!innermost(calls, i)) continue;  // what it calls does the work
      GpuOp op;
      op.name = call.log->text(call.record->name);
      op.stream = process_.stream(raw::kNoId, 0);
      op.start = op.launch = call.start;
      op.duration = call.end - call.start;
      op.call = call.index;
      timeline.ops.push_back(op);
    }
}

Nanos FrameworkCalls::replace_launches(GpuTimeline& timeline, std::size_t first) const {
  struct Work {
    GpuOp op;  // stream and device of the first launch; start, and the launch of the last
    bool any = false, used = false;
  };
  std::vector<Work> works(timeline.calls.size());
  std::int64_t outside = 0, all = 0;
  std::optional<GpuStream> stream;
  for (std::size_t i = first; i < timeline.ops.size(); ++i) {
    const GpuOp& op = timeline.ops[i];
    all += op.duration;
    if (!op.call) {
      outside += op.duration;
      continue;
    }
    Work& work = works[*op.call];
    if (!work.any) {
      work.any = true;
      work.op.stream = op.stream;
      work.op.device = op.device;
    }
    if (!stream) stream = op.stream;
    if (op.start) work.op.start = std::min(work.op.start.value_or(*op.start), *op.start);
    if (op.launch) work.op.launch = std::max(work.op.launch.value_or(*op.launch), *op.launch);
    work.op.duration += op.duration;
  }
  timeline.ops.resize(first);
  for (const auto& [thread, calls] : threads_)
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!innermost(calls, i)) continue;
      const Call& call = calls[i];
      Work& work = works[call.index];
      work.used = true;
      GpuOp op = work.op;
      op.name = call.log->text(call.record->name);
      if (!work.any) op.stream = stream.value_or(process_.stream(raw::kNoId, 0));
      if (!op.launch) op.launch = call.end;
      // One that the recorder splits off in front of another allocates what that one allocates.
      if (call.start == call.end && i + 1 < calls.size() && calls[i + 1].start == call.end + 1)
        op.launch = calls[i + 1].end - 1;
      if (!op.start) op.start = op.launch;
      op.call = call.index;
      timeline.ops.push_back(op);
    }
  for (const Work& work : works)
    if (work.any && !work.used) outside += work.op.duration;
  if (2 * outside > all)
    refuse("no operator launched {} of {} of kernels; expected most of them to be known, or --format raw",
           to_text(Nanos{outside}), to_text(Nanos{all}));
  return Nanos{outside};
}

}  // namespace tidepool
