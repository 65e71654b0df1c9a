// The forward and backward phases of a trace as a chain of stages, and what an order of the chain means for the trace.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/remat/chain.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The forward ops [first, behind) of one stage, and what they leave to the backward phase.
struct TraceStage {
  std::uint32_t first = 0, behind = 0;
  std::uint32_t window = 0;  ///< first op of the backward step: from here on, until the one of the stage before
  VersionId output = {};     ///< what the next stage reads; none for the last
  std::vector<Saved> saved;  ///< made here, with the output
};

struct TraceChain {
  std::vector<TraceStage> stages;
  Chain chain;  ///< the same stages with their times and sizes; one option each: save everything
};

/// Cuts the forward phase where one version alone connects what is before with what is behind (articulation points),
/// provided that the backward phase reads that version too, so that it stays. What existed before the step, sources and
/// versions of less than a thousandth of all saved bytes (masks, statistics) connect stages freely and are always kept.
/// Neighbours with the fewest saved bytes are put together until there are at most `most` stages. Times are sums of
/// durations, sizes are sums of bytes without addresses. O(uses + ops * log(ops)).
TraceChain linearise(const Trace& trace, std::size_t most);

/// Drops and runs that make a step go through `sequence`, sorted by `before`. Ops of the program run on their own;
/// a stage that is run again is so in front of the first backward op that needs it, op by op, each version dropped when
/// the stage has used it last. What the sequence saves is not dropped, and what it does not name is left to the run.
std::vector<Action> actions_of(const Trace& trace, const TraceChain& chain, const ChainSequence& sequence);

}  // namespace tidepool
