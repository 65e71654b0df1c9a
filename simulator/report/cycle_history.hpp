// Part of a run that a report shows: its last iterations.
#pragma once

#include "simulator/report/history.hpp"

namespace tidepool {

/// The last iterations of a history, with times since the first of them began. Spans that began earlier begin there.
/// Totals are unchanged. If the history has no more iterations, it is returned unchanged. O(history).
History last_iterations(History history, int iterations);

}  // namespace tidepool
