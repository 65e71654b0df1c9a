#include "policies/planning/gaps/step_circle.hpp"

#include <algorithm>

#include "simulator/engine/timeline.hpp"

namespace tidepool {
namespace {

std::vector<Nanos> starts(const Trace& trace) {
  std::vector<Nanos> start;
  start.reserve(trace.ops().size() + 1);
  if (trace.data().streams.size() == 1) {
    Nanos now;
    for (const Op& op : trace.ops()) {
      start.push_back(now);
      now += op.duration;
    }
    start.push_back(now);
    return start;
  }
  std::vector<VersionState> states;
  const Machine machine;
  Timeline timeline{trace, machine, {}, states};
  Nanos before;
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    for (const VersionId made : trace.made(OpId{i}))
      if (!trace.version(made).parent.valid())
        timeline.apply({Verb::kAlloc, OpId{i}, made.value(), kNoAddress, trace.size(made)});
    timeline.apply({Verb::kRun, OpId{i}, static_cast<std::uint32_t>(i), {}, {}});
    before = std::max(before, timeline.done(trace.ops()[i].stream) - trace.ops()[i].duration);
    start.push_back(before);
  }
  start.push_back(std::max(before, timeline.totals().makespan));
  return start;
}

std::vector<Bytes> loads(const Trace& trace, SlotBegins begins, const std::vector<DeadContent>& dead) {
  std::vector<Bytes> load;
  load.reserve(trace.ops().size());
  std::vector<bool> dropped(trace.buffers().size());  // by buffer: dropped before the program frees it
  auto next_dead = dead.begin();
  Bytes live;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) live += buffer.size;
  const auto at_begin = [&] { return begins == SlotBegins::kBeforeFrees ? live : Bytes{}; };
  Bytes most = at_begin();
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kAlloc)
      most = std::max(most, live += trace.buffer(BufferId{event.id}).size);
    else if (event.kind == EventKind::kFree)
      live -= dropped[event.id] ? Bytes{} : trace.buffer(BufferId{event.id}).size;
    if (event.kind != EventKind::kRun) continue;
    load.push_back(std::max(most, live));
    most = at_begin();
    for (; next_dead != dead.end() && next_dead->last_use == event.id; ++next_dead) {
      live -= trace.size(next_dead->version);
      dropped[trace.version(next_dead->version).buffer.index()] = true;
    }
  }
  return load;
}

}  // namespace

Bytes StepCircle::peak() const { return load.empty() ? Bytes{} : *std::max_element(load.begin(), load.end()); }

StepCircle step_circle(const Trace& trace, SlotBegins begins, const std::vector<DeadContent>& dead) {
  return {starts(trace), loads(trace, begins, dead)};
}

}  // namespace tidepool
