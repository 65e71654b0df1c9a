#include "simulator/studies/commands/grid_options.hpp"

#include <fmt/format.h>

namespace tidepool {

void declare_grid_options(const CommandLine& app, GridText& text) {
  app.add_option("--pool", text.pool, "the pool that places buffers: NAME or NAME(option=value), or all")
      .capture_default_str();
  app.add_option("--policy", text.policy, "the policy that frees memory: NAME, or A+B: B where A has no answer, or all")
      .capture_default_str();
  app.add_option("--capacity", text.capacity,
                 "16GiB, 0.5x or 50% (of the trace's peak), 0.3x..1.0x/8, none (no limit) or machine (its memory)")
      .capture_default_str();
  app.add_option("--machine", text.machine, "NAME (tidepool machines lists them) or a machine file")
      .capture_default_str();
  app.add_option("--seed", text.seed, "for policies that draw random numbers: 7, 1..3").capture_default_str();
  app.add_option("--assume", text.assume, "what one paper's own simulator assumed: checkmate, moccasin or simrd");
  app.add_option("--overhead-limit", text.overhead_limit,
                 "end a run whose time passes this multiple of the baseline (default: 10; none: never)");
  app.add_option(
      "--iterations", text.iterations,
      fmt::format("try up to so many iterations, {} at least, until one begins as an earlier one did; times and "
                  "counts are means over those between, or, if none does, over the last half",
                  kUsualIterations));
  app.add_flag("--first", text.first,
               "run one first step alone, which begins with weights where the policy wants them, instead of the steady "
               "state of a step that repeats");
  app.add_flag("--count-search", text.count_search,
               "add the wall time that policies take to decide to the makespan: differs from run to run");
}

std::vector<std::string> seldom_grid_options(std::vector<std::string> more) {
  more.insert(more.end(), {"--seed", "--assume", "--iterations", "--count-search", "--overhead-limit", "--scale",
                           "--rank", "--of", "--collectives", "--threads"});
  return more;
}

}  // namespace tidepool
