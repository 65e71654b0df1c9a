// The part of a run that a report shows: its last iterations.
#pragma once

#include "simulator/report/history.hpp"

namespace tidepool {

/// The last iterations of a history, with times since the first of them began. Spans that began earlier are cut off
/// there. Totals are unchanged. If it has no more iterations than that, the whole history. O(history).
History last_iterations(History history, int iterations);

}  // namespace tidepool
