// Runs that report every decision of their policies.
#pragma once

#include "simulator/decisions/decision.hpp"
#include "simulator/run.hpp"

namespace tidepool {

/// The same result as simulate().
/// @param tell  called for every decision; may be empty
Result simulate_explained(const Trace& trace, const RunSpec& spec, bool keep_plan, const OnDecision& tell);

}  // namespace tidepool
