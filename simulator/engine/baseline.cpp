// The time of a step without policy and limit.
#include <vector>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/iteration_watch.hpp"
#include "simulator/engine/op_ends.hpp"
#include "simulator/engine/timeline.hpp"
#include "simulator/run.hpp"

namespace tidepool {
namespace {

void carry_out(Timeline& timeline, const std::vector<Action>& actions) {
  for (const Action& action : actions) timeline.apply(action);
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
  carry_out(timeline, unhindered_begin(trace, true));
  carry_out(timeline, unhindered_step(trace));
  return timeline.totals().makespan;
}

Nanos baseline_time(const Trace& trace, const RunSpec& spec) {
  const Nanos launch = spec.machine.launch;
  if (!spec.steady || (trace.data().streams.size() == 1 && launch == Nanos{})) return baseline_time(trace, launch);
  std::vector<VersionState> states;
  Machine machine;
  machine.launch = launch;
  Timeline timeline{trace, machine, {}, states};
  carry_out(timeline, unhindered_begin(trace, true));
  std::vector<Boundary> boundaries{timeline.boundary()};
  std::vector<Totals> iterations;
  for (std::uint32_t i = 1;; ++i) {
    carry_out(timeline, unhindered_step(trace));
    iterations.push_back(timeline.totals());
    timeline.apply({Verb::kNext, OpId{}, i, {}, {}});
    carry_out(timeline, unhindered_begin(trace, false));
    boundaries.push_back(timeline.boundary());
    int cycle = cycle_of(boundaries, iterations);
    if (cycle == 0 && static_cast<int>(i) < spec.iterations && IterationWatch::proceed(iterations)) continue;
    if (cycle == 0) cycle = static_cast<int>(i + 1) / 2;
    return mean_of_last(iterations, cycle).makespan;
  }
}

}  // namespace tidepool
