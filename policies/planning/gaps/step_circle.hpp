// A step that repeats: the start of each op if nothing delays it, and the live bytes while it runs.
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
  std::vector<Nanos> start;  ///< by op; the last entry is the end of the step
  std::vector<Bytes> load;   ///< by op: most bytes live in its slot, see SlotBegins

  std::size_t size() const { return load.size(); }
  Nanos period() const { return start.back(); }
  /// Start of the op at a position, counted from the start of iteration 0.
  Nanos at(std::size_t position) const {
    return start[position % size()] + period() * static_cast<std::int64_t>(position / size());
  }
  Bytes peak() const;
};

/// When live bytes count for an op. kBeforeFrees: all the time from the end of the previous op on. kAfterFrees: at each
/// alloc after that, and while the op runs. So buffers that the program frees after the previous op do not count,
/// unless an alloc comes before the free. Then a swap-in may be planned into memory that becomes free only a moment
/// later.
enum class SlotBegins : std::uint8_t { kBeforeFrees, kAfterFrees };

/// @param dead   versions that are dropped after their last op, as if they were freed then; in the order of last uses,
///               as find_dead_content() gives them
/// @param trace  at least one op. With several streams, an op starts when its inputs are ready and its stream is free,
///               but not before the op that precedes it in program order.
StepCircle step_circle(const Trace& trace, SlotBegins begins = SlotBegins::kBeforeFrees,
                       const std::vector<DeadContent>& dead = {});

}  // namespace tidepool
