// The plans of a sweep, executed on real memory.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "simulator/plan_executor.hpp"
#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/sweep.hpp"

namespace tidepool {

/// Reads --validate: a number of plans; none for "all".
/// @throws InputError  "--validate: '0' is not a number of plans; expected 1 or more, or all"
std::optional<int> parse_validated(const std::string& text);

/// Executes plans of a sweep, for each trace and machine: those of all runs that ended well on a pool with addresses
/// or, with `count`, of the fastest of them at each of the `count` least capacities. Plans are computed again. The
/// database stores all measured times. For each plan, the execution with the median time is printed; the last one, if
/// it failed or its time was not measured.
/// @return  the exit code: 1 if one execution did not end well
int validate_runs(std::span<const SweepPart> parts, std::optional<int> count, const std::string& backend,
                  PlanExecutor& executor, Database& database);

}  // namespace tidepool
