// A trace condensed to a graph that is small enough for an integer program.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/remat/checkmate.hpp"
#include "policies/planning/remat/saved.hpp"
#include "policies/planning/remat/trace_chain.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Consecutive ops [first, behind), and their outputs that the backward phase reads (forward groups only).
struct OpGroup {
  std::uint32_t first = 0, behind = 0;
  std::vector<Saved> saved;
};

struct CondensedTrace {
  std::vector<OpGroup> groups;  ///< one for each node of the graph
  KeepGraph graph;
};

/// Groups consecutive ops. The forward phase becomes the stages of linearise(), at most `most`. Each stage has two
/// parts: the ops before the op that makes its output, and the rest. A part is divided further if it saves much more
/// than an average stage. The rest of the step is divided at ops that are the first to read saved values of another
/// group. Sizes are sums of bytes without addresses; values that are not saved count while the program has them. O(uses
/// + most^2).
CondensedTrace condense(const Trace& trace, std::size_t most);

/// One stage of a chain: its backward ops are the nodes that are planned, its forward ops the groups that can be rerun.
/// The values are the versions that the stage saves and its backward step reads, except its output: output and input
/// stay. Bytes are those of TraceChain::live. At most `most` groups with values, and about as many nodes behind them.
/// O(ops + versions + uses of the stage).
CondensedTrace condense_stage(const Trace& trace, const TraceChain& chain, std::size_t stage, std::size_t most);

/// Drops and runs that follow a schedule from `first_planned` on, sorted by `before`.
std::vector<Action> actions_of(const Trace& trace, const CondensedTrace& condensed, const KeepSchedule& schedule);

}  // namespace tidepool
