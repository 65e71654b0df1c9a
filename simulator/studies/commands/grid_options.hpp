// Options that simulate, sweep and other commands share.
#pragma once

#include "simulator/studies/sweep/grid.hpp"
#include "traces/base/command_line.hpp"

namespace tidepool {

/// Declares --pool, --policy, --capacity, --machine, --seed, --assume, --overhead-limit, --iterations, --first and
/// --count-search. `text` must live until the command line is parsed.
void declare_grid_options(const CommandLine& app, GridText& text);

}  // namespace tidepool
