// Runs that report every decision of their policies.
#pragma once

#include "simulator/engine/decisions/decision.hpp"
#include "simulator/run.hpp"

namespace tidepool {

/// The same result as simulate(), which describes `keep_plan`.
/// @param tell  called for every decision; may be empty
/// @throws InputError  if `tell` is not empty and a policy changes the order of the ops
Result simulate_explained(const Trace& trace, const RunSpec& spec, bool keep_plan, const OnDecision& tell);

}  // namespace tidepool
