// A step that repeats: when its ops start if nothing is in their way, and what is live while they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/planning/gaps/dead_content.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The ops of a step on a circle. Position p names op p modulo size() in the iteration p / size(); slot p is the time
/// from the start of that op to the start of the next one.
struct StepCircle {
  std::vector<Nanos> start;  ///< by op, and the end of the step behind them
  std::vector<Bytes> load;   ///< by op: most bytes live in its slot, see SlotBegins

  std::size_t size() const { return load.size(); }
  Nanos period() const { return start.back(); }
  /// When the op at a position starts, counted from the start of iteration 0.
  Nanos at(std::size_t position) const {
    return start[position % size()] + period() * static_cast<std::int64_t>(position / size());
  }
  Bytes peak() const;
};

/// From when on what is live counts for an op: from the end of the op before it, or from when that has freed what
/// nobody reads any more. In between copies back can be planned for room that is there only a moment later.
enum class SlotBegins : std::uint8_t { kBeforeFrees, kAfterFrees };

/// @param dead   is dropped when the op that uses it last has run: it is not live from then on
/// @param trace  of at least one op. With several streams an op starts when its inputs are there and its stream is
/// free;
///               starts are in program order then (what would start earlier counts as starting with the op before it).
StepCircle step_circle(const Trace& trace, SlotBegins begins = SlotBegins::kBeforeFrees,
                       const std::vector<DeadContent>& dead = {});

}  // namespace tidepool
