// End times of the ops of a step.
#pragma once

#include <span>
#include <vector>

#include "simulator/engine/timeline.hpp"
#include "simulator/machine.hpp"
#include "simulator/plan.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The actions before a step without a memory limit. Buffers from before the step get places of size 0, which overlap
/// no other place.
/// @param first  whether the iteration is the first; later iterations keep buffers that outlive the step
std::vector<Action> unhindered_begin(const Trace& trace, bool first);

/// The actions of a step without a memory limit.
std::vector<Action> unhindered_step(const Trace& trace);

struct OpEnds {
  std::vector<Nanos> ends;   ///< of the first run of each op, by op
  std::vector<Nanos> waits;  ///< by op: the part of its first run in which it waits for other devices
  /// `for_copies`: time in which an op waits only for a copy, or for memory that a copy or another stream still uses.
  /// `for_others`: time in which an op waits for other devices (Timeline::Held). Time in which several streams wait
  /// counts once.
  Nanos for_copies, for_others;
};

/// Carries out the actions of one iteration. All of them must be possible.
/// @param capacity  of the memory that places without addresses share
/// @param held      by op, see Timeline::hold()
OpEnds op_ends(const Trace& trace, const Machine& machine, Bytes capacity, std::span<const Action> actions,
               std::vector<Timeline::Held>& held);

}  // namespace tidepool
