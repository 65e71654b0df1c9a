// Recomputation of the layers between the checkpoints of a network, one segment at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/remat/layers.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The way in which a segment is run again.
enum class Regain : std::uint8_t {
  kOnce,   ///< all its layers up to a version run when the version is first needed; recomputed versions stay until they
           ///< have been used (speed-centric): m runs for m layers, all of their outputs at once
  kEvery,  ///< the segment runs for every layer that needs one of its versions; only versions that this layer needs
           ///< stay (memory-centric): m (m + 1) / 2 runs, one output at once
};

/// The layers between two checkpoint layers. Checkpoint layers keep their outputs.
struct Segment {
  std::uint32_t first = 0, behind = 0;  ///< layers
  Bytes kept;                           ///< droppable bytes of its layers' versions that the backward phase reads
  Regain regain = Regain::kOnce;
};

/// The segments between layers of the kind `checkpoint`, each with Regain::kOnce. Two kinds of versions are not
/// dropped: those below a thousandth of all kept bytes, and those that several later layers read forward (the start of
/// a branch that joins later: without it, a segment after the join would be rerun from before the branch).
std::vector<Segment> find_segments(const Trace& trace, const Layers& layers, LayerKind checkpoint);

/// The most bytes that the backward ops of one layer use, without buffers from before the step.
Bytes backward_bottleneck(const Trace& trace, const Layers& layers);

/// Drops of the segments' versions after their last use in the forward phase and, for segments of kEvery, runs and
/// drops around the backward ops of layers; sorted by `before`. All other versions come back on demand. O(uses +
/// backward layers * their inputs).
std::vector<Action> recompute_segments(const Trace& trace, const Layers& layers, const std::vector<Segment>& segments);

}  // namespace tidepool
