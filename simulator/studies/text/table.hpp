// The runs of a sweep as a table for people.
#pragma once

#include <string>

#include "simulator/studies/sweep/frontier.hpp"

namespace tidepool {

/// A table with a row for every policy and pool and a column for every capacity. Each cell has the overhead in percent,
/// or the reason why there is none. Further rows have the lower bounds on plans of each kind. Columns that do not fit
/// into `width` characters follow in further tables below.
std::string table(const Frontier& frontier, std::size_t width);

}  // namespace tidepool
