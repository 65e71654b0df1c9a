// Part of a run that a report shows: its last iterations.
#pragma once

#include "simulator/report/history.hpp"

namespace tidepool {

/// The last iterations of a history, with times since the first of them began. Copies and places that began earlier
/// begin there; runs that began earlier are left out. Totals are unchanged. If the history does not have more
/// iterations than these, it is returned unchanged. O(history).
History last_iterations(History history, int iterations);

}  // namespace tidepool
