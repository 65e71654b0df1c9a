// Options that simulate, sweep and other commands share.
#pragma once

#include <string>
#include <vector>

#include "simulator/studies/sweep/grid.hpp"
#include "traces/base/command_line.hpp"

namespace tidepool {

/// Declares --pool, --policy, --capacity, --machine, --seed, --assume, --overhead-limit, --iterations, --first and
/// --count-search. `text` must live until the command line is parsed.
void declare_grid_options(const CommandLine& app, GridText& text);

/// Those of these options and of declare_job_options() that only --help-all lists, and `more`.
std::vector<std::string> seldom_grid_options(std::vector<std::string> more = {});

}  // namespace tidepool
