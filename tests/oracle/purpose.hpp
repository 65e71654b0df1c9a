// Moves of a partial plan that only later moves can justify.
#pragma once

#include "tests/oracle/state.hpp"

namespace tidepool::optimum {

/// Content that was brought to a place or to the host and has not been used yet. A plan in which such content ends
/// without use is never better than the same plan without it: copies, runs and places that are left out delay nothing
/// and take no memory.
struct Purpose {
  Set fresh = ~Set{0};  ///< made by the last run, or resident when the step begins
  Set brought = 0;      ///< copied from the host, or resident when the step begins, and not read since
  Set recomputed = 0;   ///< content that was the only reason for a rerun, neither read nor copied since
  Set copied_out = 0;   ///< copied to the host and not brought back

  /// Records a move. @return  false if some content has ended without use
  bool note(const TinyStep& step, const State& before, const Move& move, const State& after);

 private:
  bool next_iteration(const TinyStep& step, const State& before);
};

}  // namespace tidepool::optimum
