// Sweep run by a command: it shows progress, can be interrupted, and prints tables and plots of its results.
#pragma once

#include <string>

#include "simulator/studies/sweep/database.hpp"
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

}  // namespace tidepool
