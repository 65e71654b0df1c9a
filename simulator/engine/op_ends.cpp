#include "simulator/engine/op_ends.hpp"

#include <algorithm>
#include <utility>

namespace tidepool {
namespace {

/// Total time in which at least one wait goes on.
class Waits {
 public:
  void add(Nanos begin, Nanos end) {
    if (end > begin) waits_.emplace_back(begin, end);
  }
  Nanos total() {
    std::sort(waits_.begin(), waits_.end());
    Nanos sum, done;  // no wait begins before 0
    for (const auto& [begin, end] : waits_) {
      sum += std::max(end - std::max(begin, done), Nanos{});
      done = std::max(done, end);
    }
    return sum;
  }

 private:
  std::vector<std::pair<Nanos, Nanos>> waits_;
};

}  // namespace

std::vector<Action> unhindered_begin(const Trace& trace, bool first) {
  std::vector<Action> actions;
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (const Buffer& buffer = trace.buffers()[i]; buffer.born_before && (first || !buffer.outlives))
      actions.push_back({Verb::kAlloc, OpId{}, trace.first_version(BufferId{i}).value(), Bytes{}, Bytes{}});
  return actions;
}

std::vector<Action> unhindered_step(const Trace& trace) {
  std::vector<Action> actions;
  for (const Event& event : trace.events())
    if (event.kind == EventKind::kRun)
      actions.push_back({Verb::kRun, OpId{event.id}, event.id, {}, {}});
    else if (event.kind == EventKind::kAlloc)
      actions.push_back({Verb::kAlloc, OpId{}, trace.first_version(BufferId{event.id}).value(), Bytes{}, Bytes{}});
  return actions;
}

OpEnds op_ends(const Trace& trace, const Machine& machine, Bytes capacity, std::span<const Action> actions,
               std::vector<Timeline::Held>& held) {
  std::vector<VersionState> states;
  Timeline timeline{trace, machine, {}, states, capacity};
  timeline.hold(held);
  OpEnds run{std::vector<Nanos>(trace.ops().size()), std::vector<Nanos>(trace.ops().size()), {}, {}};
  std::vector<bool> ran(trace.ops().size());
  Waits for_copies, for_others;
  for (const Action& action : actions) {
    if (action.verb != Verb::kRun && action.verb != Verb::kAwait) {
      timeline.apply(action);
      continue;
    }
    const bool runs = action.verb == Verb::kRun;
    const StreamId stream = trace.op(runs ? OpId{action.subject} : action.before).stream;
    const Nanos free = timeline.done(stream);
    const Stall before = timeline.stall();
    timeline.apply(action);
    const Stall& after = timeline.stall();
    if (after.h2d + after.d2h > before.h2d + before.d2h)
      for_copies.add(runs ? held[action.subject].unhindered : free, free + after.compute - before.compute);
    if (!runs) continue;
    for_others.add(held[action.subject].alone, timeline.done(stream));
    if (ran[action.subject]) continue;
    ran[action.subject] = true;
    run.ends[action.subject] = timeline.done(stream);
    run.waits[action.subject] = timeline.done(stream) - held[action.subject].alone;
  }
  run.for_copies = for_copies.total(), run.for_others = for_others.total();
  return run;
}

}  // namespace tidepool
