// The part of a run that repeats, cut out of its history to be shown.
#pragma once

#include "simulator/report/history.hpp"

namespace tidepool {

/// The last iterations of a history, in times since the first of them began; what reaches into them begins with them.
/// Totals stay. The whole history where it has no more iterations. O(history).
History last_iterations(History history, int iterations);

}  // namespace tidepool
