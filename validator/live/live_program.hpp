// A realised plan as a live job carries it out: which ops to expect, and what to do to their tensors in front of each.
#pragma once

#include <string>

#include "simulator/plan_file.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The text that tidepool_live (validator/live/) reads: one JSON object, see validator/live/README.md.
///
/// Of the plan it keeps what a framework has not done already: copies, drops, ops run again, and the ends of what the
/// plan alone brought back. Places are left to the framework's allocator. What the plan expects on the host when the
/// step begins is sent there first. O(uses + actions).
/// @param trace  recorded by tidepool_torch: every op an aten op, every use from its schema
/// @throws InputError  for a plan that a live job cannot carry out, naming the op, as in "run.plan: runs op 7
///                     (aten::lift_fresh) again, which brings bytes from outside; expected a plan without it"
std::string live_program(const Trace& trace, const PlanFile& file, const std::string& plan_name);

}  // namespace tidepool
