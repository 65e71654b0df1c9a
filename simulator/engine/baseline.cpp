// Time of a step that nothing hinders.
#include <vector>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/iteration_watch.hpp"
#include "simulator/engine/timeline.hpp"
#include "simulator/run.hpp"

namespace tidepool {
namespace {

/// What existed before the step gets places of no size, which are in nobody's way.
void begin_unhindered(const Trace& trace, Timeline& timeline, bool first) {
  for (std::size_t i = 0; i < trace.buffers().size(); ++i)
    if (const Buffer& buffer = trace.buffers()[i]; buffer.born_before && (first || !buffer.outlives))
      timeline.apply({Verb::kAlloc, OpId{}, trace.first_version(BufferId{i}).value(), Bytes{}, Bytes{}});
}

void run_unhindered(const Trace& trace, Timeline& timeline) {
  for (const Step& step : trace.steps())
    if (step.kind == StepKind::kRun)
      timeline.apply({Verb::kRun, OpId{step.id}, step.id, {}, {}});
    else if (step.kind == StepKind::kAlloc)
      timeline.apply({Verb::kAlloc, OpId{}, trace.first_version(BufferId{step.id}).value(), Bytes{}, Bytes{}});
}

}  // namespace

Nanos baseline_time(const Trace& trace, Nanos launch) {
  if (trace.data().streams.size() == 1 && launch == Nanos{}) {
    Nanos sum;
    for (const Op& op : trace.ops()) sum += op.duration;
    return sum;
  }
  std::vector<VersionState> states;
  Machine machine;
  machine.launch = launch;
  Timeline timeline{trace, machine, {}, states};
  begin_unhindered(trace, timeline, true);
  run_unhindered(trace, timeline);
  return timeline.totals().makespan;
}

Nanos baseline_time(const Trace& trace, const RunSpec& spec) {
  const Nanos launch = spec.machine.launch;
  if (!spec.steady || (trace.data().streams.size() == 1 && launch == Nanos{})) return baseline_time(trace, launch);
  std::vector<VersionState> states;
  Machine machine;
  machine.launch = launch;
  Timeline timeline{trace, machine, {}, states};
  begin_unhindered(trace, timeline, true);
  std::vector<Boundary> boundaries{timeline.boundary()};
  std::vector<Totals> iterations;
  for (std::uint32_t i = 1;; ++i) {
    run_unhindered(trace, timeline);
    iterations.push_back(timeline.totals());
    timeline.apply({Verb::kNext, OpId{}, i, {}, {}});
    begin_unhindered(trace, timeline, false);
    boundaries.push_back(timeline.boundary());
    int cycle = cycle_of(boundaries, iterations);
    if (cycle == 0 && static_cast<int>(i) < spec.iterations && IterationWatch::proceed(static_cast<int>(i))) continue;
    if (cycle == 0) cycle = static_cast<int>(i + 1) / 2;
    return mean_of_last(iterations, cycle).makespan;
  }
}

}  // namespace tidepool
