// Part of a run that a report shows: its last iterations.
#pragma once

#include "simulator/studies/report/history.hpp"

namespace tidepool {

/// The last iterations of a history, with times since the first of them began. Copies and places that began earlier
/// begin at time 0; runs that began earlier are left out. Totals are unchanged. A history of at most `iterations`
/// iterations is returned unchanged. O(history).
History last_iterations(History history, int iterations);

}  // namespace tidepool
