// Differences between two sets of results, in text and JSON.
#pragma once

#include <cstddef>
#include <string>

namespace tidepool {

/// Compares two selections of runs (see parse_selection) and prints what moved.
/// @param show  how many of the most changed runs are named
/// @return the exit code: 0 if nothing moved, else 1
int diff_results(const std::string& a, const std::string& b, std::size_t show, bool json);

}  // namespace tidepool
