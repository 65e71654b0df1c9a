#include "simulator/engine/op_ends.hpp"

namespace tidepool {

std::vector<Action> unhindered_begin(const Trace& trace, bool first) {
  std::vector<Action> actions;
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (const Buffer& buffer = trace.buffers()[i]; buffer.born_before && (first || !buffer.outlives))
      actions.push_back({Verb::kAlloc, OpId{}, trace.first_version(BufferId{i}).value(), Bytes{}, Bytes{}});
  return actions;
}

std::vector<Action> unhindered_step(const Trace& trace) {
  std::vector<Action> actions;
  for (const Step& step : trace.steps())
    if (step.kind == StepKind::kRun)
      actions.push_back({Verb::kRun, OpId{step.id}, step.id, {}, {}});
    else if (step.kind == StepKind::kAlloc)
      actions.push_back({Verb::kAlloc, OpId{}, trace.first_version(BufferId{step.id}).value(), Bytes{}, Bytes{}});
  return actions;
}

OpEnds op_ends(const Trace& trace, const Machine& machine, Bytes capacity, std::span<const Action> actions,
               std::vector<Timeline::Held>& held) {
  std::vector<VersionState> states;
  Timeline timeline{trace, machine, {}, states, capacity};
  timeline.hold(held);
  OpEnds run{std::vector<Nanos>(trace.ops().size()), {}};
  std::vector<bool> ran(trace.ops().size());
  for (const Action& action : actions) {
    timeline.apply(action);
    if (action.verb != Verb::kRun || ran[action.subject]) continue;
    ran[action.subject] = true;
    run.ends[action.subject] = timeline.done(trace.op(OpId{action.subject}).stream);
  }
  run.stall = timeline.stall();
  return run;
}

}  // namespace tidepool
