// Runs that tell of every decision of their policies.
#pragma once

#include "simulator/decisions/decision.hpp"
#include "simulator/run.hpp"

namespace tidepool {

/// The same as simulate(), which does not depend on whether anybody listens.
/// @param tell  called for every decision; empty: nobody is told
Result simulate_explained(const Trace& trace, const RunSpec& spec, bool keep_plan, const OnDecision& tell);

}  // namespace tidepool
