// The runs of a sweep as a table for people.
#pragma once

#include <string>

#include "simulator/sweep/frontier.hpp"

namespace tidepool {

/// A row for every policy and pool, a column for every capacity, in each cell the overhead in percent or why there is
/// none, and below a row for each bound: no plan that may do the same is better. Columns that do not fit into `width`
/// characters go below.
std::string table(const Frontier& frontier, std::size_t width);

}  // namespace tidepool
