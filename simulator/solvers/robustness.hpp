// Cost of a plan on a machine whose ops and links have other speeds than the plan assumes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/plan.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The same step on a machine that differs from the planned one.
struct Scenario {
  std::string name;  ///< "as planned", "slower links", "noise 1", ...
  Trace trace;       ///< the same ops, buffers and order; other durations
  RunSpec spec;      ///< other links
  Nanos unlimited;   ///< time of the step in this scenario without a memory limit
};

/// The first scenario is as planned. In the second, all links are slower by the share `by`. Four more have random
/// noise: each op's duration is multiplied by its own number from [1 - by, 1 + by], and each direction of each link is
/// slower by its own share from [0, by]. Deterministic for a seed.
/// @param by  in [0, 1)
std::vector<Scenario> scenarios_around(const Trace& trace, const RunSpec& spec, double by, std::uint64_t seed);

/// The machine with all links, also those to its storage, slower by a share in [0, 1); latencies stay.
Machine with_slower_links(Machine machine, double by);

/// A link that moves data at `rate_ppm` millionths of its rate.
Link at_rate(Link link, std::int64_t rate_ppm);

/// The cost of a plan in a scenario, where replay() executes its actions in order.
struct ScenarioCost {
  Nanos makespan;
  double ratio = 1;  ///< makespan over Scenario::unlimited, which counts as 1 ns if it is 0
};
/// One cost for each scenario. @throws PlanError  if `plan` was not made for this trace and these settings
std::vector<ScenarioCost> costs_in(const std::vector<Scenario>& scenarios, const Plan& plan);

/// The least and the largest ratio of two times if the op times, which a model estimated, are off by as much as it is
/// in the mean (see error_of_times): all in one direction, or the ops of each name by a share of their own. Copies,
/// links and the time in which the host issues ops stay. None if no model gave the times.
using RatioBetween = std::optional<std::pair<double, double>>;

/// Between which ratios that of a plan lies. @throws PlanError  as costs_in()
RatioBetween ratios_of_times(const Trace& trace, const RunSpec& spec, const Plan& plan);

/// The same of a changed step, without plan and limit, over the step as it is.
/// @param launch  as for baseline_time()
RatioBetween ratios_of_times(const Trace& step, const Trace& changed, Nanos launch);

/// " (2.10 to 3.40)": overheads in %; "" if there is no range.
std::string to_text(const RatioBetween& between, int digits = 2);

/// The index of the first scenario with the largest ratio; `costs` is not empty.
std::size_t worst_of(const std::vector<ScenarioCost>& costs);

}  // namespace tidepool
