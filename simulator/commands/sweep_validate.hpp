// The best plans of a sweep, executed on real memory.
#pragma once

#include <span>
#include <string>

#include "simulator/database.hpp"
#include "simulator/plan_executor.hpp"
#include "simulator/sweep.hpp"

namespace tidepool {

/// For each trace and machine of a sweep, the fastest run at each capacity, of them the `count` with the least memory:
/// makes their plans again, executes them, keeps what was measured in the database and prints it.
/// @return  the exit code: 1 if one did not end well
int validate_best(std::span<const SweepPart> parts, int count, const std::string& backend, PlanExecutor& executor,
                  Database& database);

}  // namespace tidepool
