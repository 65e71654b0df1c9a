// The options that simulate and sweep share.
#pragma once

#include "simulator/grid.hpp"

namespace CLI {
class App;
}

namespace tidepool {

/// Declares --pool, --policy, --capacity, --machine, --seed, --assume, --overhead-limit, --iterations and
/// --count-search. `text` must live until the command line is parsed.
void declare_grid_options(CLI::App& app, GridText& text);

}  // namespace tidepool
