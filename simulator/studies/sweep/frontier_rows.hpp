// Frontiers from the rows of a sweep.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/result_row.hpp"

namespace tidepool {

/// The point of a run. @param policy, pool  as the user wrote them, with their options
Point point_of(const Row& row, const std::string& policy, const std::string& pool);

/// A frontier for each trace on each machine (and for each value of assume, overhead_limit, iterations, steady,
/// count_search and version), in the order of the rows.
std::vector<Frontier> frontiers_of(std::span<const Row> rows);

/// The pool and the policies of a row with their options, as a user writes them: "pytorch(segments=expandable)".
struct WrittenNames {
  std::string pool, policy;
};
WrittenNames written_names(const Row& row);

}  // namespace tidepool
