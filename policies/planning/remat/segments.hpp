// Recomputing what lies between the checkpoints of a network, one segment at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/remat/layers.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// How a segment is run again.
enum class Regain : std::uint8_t {
  kOnce,   ///< when something of it is needed first, with all that lies before that; what comes back stays until it has
           ///< been used (speed-centric): m runs for m layers, all of their outputs at once
  kEvery,  ///< for every layer that needs something of it, and only what that layer needs stays (memory-centric):
           ///< m (m + 1) / 2 runs, one output at once
};

/// A run of layers between two checkpoint layers, which keep what they make.
struct Segment {
  std::uint32_t first = 0, behind = 0;  ///< layers
  Bytes kept;                           ///< what its layers make for the backward phase and may be dropped
  Regain regain = Regain::kOnce;
};

/// The segments between layers of the kind `checkpoint`. Two things are not dropped: what is less than a thousandth of
/// all kept bytes, and what several layers read forward (the start of a branch that joins later: without it, a segment
/// behind the joint would have to be run again from before the branch).
std::vector<Segment> find_segments(const Trace& trace, const Layers& layers, LayerKind checkpoint);

/// The most that the backward ops of one layer use, besides what existed before the step.
Bytes backward_bottleneck(const Trace& trace, const Layers& layers);

/// Drops what segments make behind its last use in the forward phase and, for segments regained for every layer, runs
/// and drops around the backward ops of layers; sorted by `before`. All else comes back on demand. O(uses + backward
/// layers * what they need).
std::vector<Action> recompute_segments(const Trace& trace, const Layers& layers, const std::vector<Segment>& segments);

}  // namespace tidepool
