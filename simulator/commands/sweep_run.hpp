// A sweep as commands run it: with progress, interruptible, with tables and plots of its results.
#pragma once

#include <string>

#include "simulator/sweep/database.hpp"
#include "simulator/sweep/sweep_request.hpp"
#include "traces/command_line.hpp"

namespace tidepool {

/// How the results are shown.
struct SweepShow {
  bool json = false, no_plot = false;
};

/// Declares --json and --no-plot.
void declare_show_options(const CommandLine& app, SweepShow& show);

/// Reads -j. "": all cores. @throws InputError  "-j: '0' is not a number of threads; expected 1 to 1024"
int parse_threads(const std::string& text);

/// Prints what the database has of a shard: a table and a plot for each trace and machine, or JSON.
void print_results(std::span<const SweepPart> parts, const Database& database, const Shard& shard,
                   const SweepShow& show);

/// Does the runs that the database lacks, of the whole grid or of what order.find needs, keeps the order in it, and
/// prints the results or what was found.
/// @param parts  what load_parts made of the order
/// @return  the exit code
int run_sweep(const SweepOrder& order, std::span<const SweepPart> parts, Database& database, int threads,
              const SweepShow& show);

}  // namespace tidepool
