// Cost of a plan on a machine whose ops and links are slower than it was made for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/plan.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The same step on a machine that is not quite what was thought.
struct Scenario {
  std::string name;  ///< "as planned", "slower links", "noise 1", ...
  Trace trace;       ///< the same ops, buffers and order; other durations
  RunSpec spec;      ///< other links
  Nanos unlimited;   ///< what the step takes there without any limit
};

/// First as it was planned; then with all links slower by `by`; then four times with each op's duration times a number
/// of its own from [1 - by, 1 + by], and each direction of each link slower by a share of its own from [0, by].
/// Deterministic for a seed.
/// @param by  in [0, 1)
std::vector<Scenario> scenarios_around(const Trace& trace, const RunSpec& spec, double by, std::uint64_t seed);

/// The links of a machine, and those to its storage, slower by a share in [0, 1); latencies stay.
Machine with_slower_links(Machine machine, double by);

/// A link that moves data at `rate_ppm` millionths of its rate.
Link at_rate(Link link, std::int64_t rate_ppm);

/// A plan in a scenario: its actions in their order, as replay() executes them.
struct ScenarioCost {
  Nanos makespan;
  double ratio = 1;  ///< to the time of the scenario without any limit
};
/// One for each scenario. @throws PlanError  if `plan` is not one of this trace and setting
std::vector<ScenarioCost> costs_in(const std::vector<Scenario>& scenarios, const Plan& plan);

/// The one with the largest ratio, the first of several. There is one.
std::size_t worst_of(const std::vector<ScenarioCost>& costs);

}  // namespace tidepool
