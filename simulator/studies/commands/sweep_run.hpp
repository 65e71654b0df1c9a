// Sweep run by a command: it shows progress, can be interrupted, and prints tables and plots of its results. Plans of a
// sweep, executed on real memory.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "simulator/plan_executor.hpp"
#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/sweep.hpp"
#include "simulator/studies/sweep/sweep_request.hpp"
#include "traces/base/command_line.hpp"

namespace tidepool {

/// How the results are shown.
struct SweepShow {
  bool json = false, no_plot = false;
};

/// Declares --json and --no-plot.
void declare_show_options(const CommandLine& app, SweepShow& show);

/// Reads -j. "": all cores. @throws InputError  "-j: '0' is not a number of threads; expected 1 to 1024"
int parse_threads(const std::string& text);

/// Prints the results of a shard in the database: a table and a plot for each trace and machine, or JSON.
void print_results(std::span<const SweepPart> parts, const Database& database, const Shard& shard,
                   const SweepShow& show);

/// Executes the missing runs of the order's shard or, for a search (order.find), the runs that the search needs. Stores
/// the request and the runs in the database. Prints the results, or the values that the search found.
/// @param parts  the traces and grids of the request, see load_parts()
/// @return  the exit code
int run_sweep(const SweepOrder& order, std::span<const SweepPart> parts, Database& database, int threads,
              const SweepShow& show);

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
