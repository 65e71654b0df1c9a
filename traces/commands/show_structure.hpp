// The repeated parts of a step, as `tidepool info --structure` prints them.
#pragma once

#include <string>

#include "traces/trace.hpp"

namespace tidepool {

/// Prints the repeats of find_structure(): for people, or as one JSON object.
void show_structure(const std::string& path, const Trace& trace, bool json);

}  // namespace tidepool
