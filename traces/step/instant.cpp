#include "traces/step/instant.hpp"

#include <algorithm>
#include <utility>

#include "traces/base/refuse.hpp"
#include "traces/one_device.hpp"

namespace tidepool {
namespace {

/// Bytes alive after each step; the first entry is before all steps.
std::vector<Bytes> live_curve(const Trace& trace) {
  std::vector<Bytes> curve{Bytes{}};
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) curve[0] += buffer.size;
  for (const Event& event : trace.events()) {
    curve.push_back(curve.back());
    if (event.kind == EventKind::kAlloc) curve.back() += trace.buffer(BufferId{event.id}).size;
    if (event.kind == EventKind::kFree) curve.back() -= trace.buffer(BufferId{event.id}).size;
  }
  return curve;
}

/// The first op that runs at or after a step.
OpId next_op(const Trace& trace, std::size_t step) {
  for (; step < trace.events().size(); ++step)
    if (trace.events()[step].kind == EventKind::kRun) return OpId{trace.events()[step].id};
  return {};
}

Instant instant_at(const Trace& trace, std::size_t step) {
  Instant instant{.step = step, .op = next_op(trace, step), .live = {}, .in_use = {}, .buffers = {}};
  std::vector<LiveBuffer> all(trace.buffers().size());
  std::vector<bool> live(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].buffer = BufferId{i};
    live[i] = trace.buffers()[i].born_before;
  }
  OpId latest;
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    const Event& at = trace.events()[i];
    if (at.kind == EventKind::kAlloc && i < step) live[at.id] = true;
    if (at.kind == EventKind::kAlloc) {
      all[at.id].allocated = i;
      all[at.id].since = trace.allocated_for(i);
    }
    if (at.kind == EventKind::kFree) {
      all[at.id].freed = i;
      if (i < step) live[at.id] = false;
      all[at.id].until = latest;
    }
    if (at.kind != EventKind::kRun) continue;
    latest = OpId{at.id};
    for (const Use& use : trace.uses(latest)) {
      LiveBuffer& used = all[trace.version(use.in.valid() ? use.in : use.out).buffer.index()];
      if (!used.since.valid() && !trace.buffer(used.buffer).born_before) used.since = latest;
      if (i < step) used.last_use = latest;
      if (i >= step && !used.next_use.valid()) used.next_use = latest;
      used.in_use = used.in_use || (instant.op.valid() && latest == instant.op);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Bytes size = trace.buffers()[i].size;
    if (!live[i] || size == Bytes{}) continue;
    instant.live += size;
    if (all[i].in_use) instant.in_use += size;
    instant.buffers.push_back(all[i]);
  }
  std::stable_sort(instant.buffers.begin(), instant.buffers.end(), [&](const LiveBuffer& a, const LiveBuffer& b) {
    return trace.buffer(a.buffer).size > trace.buffer(b.buffer).size;
  });
  return instant;
}

/// Steps [first, last) of the iteration that a step is in; all of them if none is marked.
std::pair<std::size_t, std::size_t> iteration_of(const Trace& trace, std::size_t step) {
  std::size_t first = 0, last = trace.events().size();
  for (const Mark& mark : trace.data().marks) {
    if (mark.kind != MarkKind::kIteration) continue;
    if (mark.event <= step) first = mark.event;
    if (mark.event > step) last = std::min<std::size_t>(last, mark.event);
  }
  return {first, last};
}

}  // namespace

void require_one_memory(const Trace& trace, std::string_view purpose) {
  if (trace.buffers().empty()) refuse("the trace has no buffers; expected at least one");
  require_one_device(trace, purpose);
}

Bytes never_used_again(const Trace& trace, const Instant& instant) {
  Bytes bytes;
  if (trace.data().uses.empty()) return bytes;
  for (const LiveBuffer& live : instant.buffers) {
    const Buffer& buffer = trace.buffer(live.buffer);
    const bool made_here = !buffer.born_before || !buffer.outlives;
    const bool stays = buffer.kind == BufferKind::kParameter || buffer.kind == BufferKind::kOptimizerState;
    if (!live.in_use && !live.next_use.valid() && made_here && !stays) bytes += buffer.size;
  }
  return bytes;
}

Instant peak_instant(const Trace& trace) {
  const std::vector<Bytes> curve = live_curve(trace);
  const auto most = std::max_element(curve.begin(), curve.end());
  return instant_at(trace, static_cast<std::size_t>(most - curve.begin()));
}

Instant instant_of(const Trace& trace, OpId op) { return instant_at(trace, trace.position(op)); }

Lowered lowered_peak(const Trace& trace, const Instant& instant, const std::vector<LiveBuffer>& gone) {
  const std::vector<Bytes> curve = live_curve(trace);
  // For each buffer the range of the curve in which it is alive: [born, died).
  std::vector<std::size_t> born(trace.buffers().size()), died(trace.buffers().size(), curve.size());
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind == EventKind::kAlloc) born[trace.events()[i].id] = i + 1;
    if (trace.events()[i].kind == EventKind::kFree) died[trace.events()[i].id] = i + 1;
  }
  std::vector<Bytes> change(curve.size() + 1);
  Lowered lowered;
  for (const LiveBuffer& live : gone) {
    if (live.in_use) continue;
    const std::size_t i = live.buffer.index();
    const Bytes size = trace.buffer(live.buffer).size;
    lowered.absent += size;
    change[live.last_use.valid() ? trace.position(live.last_use) + 1 : born[i]] -= size;
    change[live.next_use.valid() ? trace.position(live.next_use) : died[i]] += size;
  }
  const auto [first, last] = iteration_of(trace, instant.step);
  Bytes away;
  std::size_t at = first;
  for (std::size_t i = 0; i <= last; ++i) {
    away += change[i];
    if (i < first || (i > first && curve[i] + away <= lowered.peak)) continue;
    lowered.peak = curve[i] + away;
    at = i;
  }
  lowered.op = next_op(trace, at);
  return lowered;
}

}  // namespace tidepool
