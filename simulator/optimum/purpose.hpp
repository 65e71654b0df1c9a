// Moves of a partial plan that only later moves can justify.
#pragma once

#include "simulator/optimum/state.hpp"

namespace tidepool::optimum {

/// Content that was brought to a place or to the host, and of which no use has been made yet. A plan in which something
/// ends without use is never better than the same plan without it: what is not copied, run or placed delays nothing and
/// holds no memory.
struct Purpose {
  Set fresh = ~Set{0};  ///< made by the last run, or there when the step begins
  Set brought = 0;      ///< copied from the host, or on the device when the step begins, and not read since
  Set recomputed = 0;   ///< the only content that a second run brought back, and neither read nor copied since
  Set copied_out = 0;   ///< copied to the host and not brought back

  /// Notes a move. False: something has ended without use.
  bool note(const TinyStep& step, const State& before, const Move& move, const State& after);

 private:
  bool next_iteration(const TinyStep& step, const State& before);
};

}  // namespace tidepool::optimum
