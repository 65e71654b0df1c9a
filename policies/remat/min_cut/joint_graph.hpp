// The forward and backward phase of a trace as one graph of values, for the partitioner.
#pragma once

#include <vector>

#include "policies/remat/min_cut/partition.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A node for each version and view that forward or backward ops use or make, and one more for each op with several
/// outputs or none; workspaces of library calls do not count. An op's class comes from its name. A view has the size of
/// the buffer that it shows. The result of an in-place update is a new value, as after PyTorch's functionalisation. All
/// backward ops count as dependent on the root gradient. The forward phase has two results: its versions that are
/// outputs of the step, and the loss: the outputs of its last op that reads a version. A later op that reads nothing
/// makes the root gradient.
struct TraceGraph {
  JointGraph graph;
  std::vector<VersionId> values;  ///< by node; none for the node of an op with several outputs or none
};
TraceGraph joint_graph(const Trace& trace);

}  // namespace tidepool
