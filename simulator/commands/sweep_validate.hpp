// The plans of a sweep, executed on real memory.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "simulator/engine/plan_executor.hpp"
#include "simulator/sweep/database.hpp"
#include "simulator/sweep/sweep.hpp"

namespace tidepool {

/// Reads --validate: a number, or nothing for "all".
/// @throws InputError  "--validate: '0' is not a number of plans; expected 1 or more, or all"
std::optional<int> parse_validated(const std::string& text);

/// For each trace and machine of a sweep, every run that ended well or, of the fastest at each capacity, the `count`
/// with the least memory: makes their plans again, executes them, keeps what was measured in the database and prints,
/// for each plan, the run with the median time.
/// @return  the exit code: 1 if one did not end well
int validate_runs(std::span<const SweepPart> parts, std::optional<int> count, const std::string& backend,
                  PlanExecutor& executor, Database& database);

}  // namespace tidepool
