// A trace as a graph small enough for an integer program.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/remat/checkmate.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Consecutive ops [first, behind), and what they make that the backward phase reads again (forward groups only).
struct OpGroup {
  std::uint32_t first = 0, behind = 0;
  std::vector<Saved> saved;
};

struct CondensedTrace {
  std::vector<OpGroup> groups;  ///< one for each node of the graph
  KeepGraph graph;
};

/// Puts neighbouring ops together: the forward phase into the stages of linearise(), at most `most`, each in two: what
/// makes its output, and all before that, which is divided further where it saves much more than a stage on average;
/// the rest of the step where it first reads what another group has saved. Sizes are sums of bytes without addresses;
/// what is not saved is counted where the program has it. O(uses + most^2).
CondensedTrace condense(const Trace& trace, std::size_t most);

/// Drops and runs that follow a schedule, sorted by `before`.
std::vector<Action> actions_of(const Trace& trace, const CondensedTrace& condensed, const KeepSchedule& schedule);

}  // namespace tidepool
