// Conversion of a realised plan for a live job: the expected ops, and the actions on tensors before each of them.
#pragma once

#include <string>

#include "simulator/plan_file.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The text that tidepool_live (validator/live/) reads: one JSON object, see validator/live/README.md.
///
/// It contains the ops that the plan runs again and all its copies, waits for copies, drops and frees. A free ends what
/// only the plan keeps. The framework's allocator chooses places. Versions that the plan expects
/// on the host at the begin of the step are swapped out first. O(uses + actions).
/// @param trace  recorded by tidepool_torch: every op an aten op, every use from its schema
/// @throws InputError  for a plan that a live job cannot carry out, with the reason, as in "run.plan: runs op 7
///                     (aten::lift_fresh) again, which brings bytes from outside; expected a plan without it"
std::string live_program(const Trace& trace, const PlanFile& file, const std::string& plan_name);

/// Whether the trace has the operators of graphs that torch.compile has made.
bool is_of_graphs(const Trace& trace);

/// What the compiler saves of its graphs under a plan.
struct GraphPlan {
  std::string text;  ///< one JSON object for tidepool_torch.partitioner: the names of what is saved for backward
  Bytes held;        ///< the sum of their bytes
};

/// The part of a plan that torch.compile can carry out: what is on the device at the end of forward is saved, and all
/// else is made again in backward. O(uses + actions).
GraphPlan graph_plan(const Trace& trace, const PlanFile& file);

/// The memory that the plan promises for the step: its capacity, or its peak if it was made without a capacity.
Bytes promised_bytes(const PlanFile& file);

/// The most bytes that the plan keeps away from the device while an op runs, but that a live job cannot move: memory
/// that no operator names, such as a workspace of cuBLAS. O(buffers + uses + actions).
Bytes immovable_bytes(const Trace& trace, const PlanFile& file);

}  // namespace tidepool
