// The forward and backward phase of a trace as one graph of values, for the partitioner.
#pragma once

#include <vector>

#include "policies/planning/remat/partition.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A node for each version and view that forward or backward ops use or make, and one more for each op that makes
/// several. An op's class comes from its name; a view weighs as much as the buffer that it shows, and what an op updates
/// in place is a new value, as after functionalisation. The backward phase depends on the gradient as a whole. The
/// result of the forward phase is what the step hands on of it and what its last op makes.
struct TraceGraph {
  JointGraph graph;
  std::vector<VersionId> values;  ///< by node; none for an op that makes several
};
TraceGraph joint_graph(const Trace& trace);

}  // namespace tidepool
