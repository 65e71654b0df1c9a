// tidepool view: a run in the terminal.
#include "simulator/report/view.hpp"

#include <fmt/format.h>

#include <memory>

#include "simulator/commands/grid_options.hpp"
#include "simulator/order/ordered_step.hpp"
#include "simulator/registry.hpp"
#include "simulator/report/cycle_history.hpp"
#include "simulator/sweep/result_row.hpp"
#include "simulator/text/terminal.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"
#include "traces/import/importer.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

struct Arguments {
  std::string trace;
  GridText grid;
};

int run(const Arguments& arguments) {
  const Trace trace = load_trace(arguments.trace);
  const Grid grid{arguments.grid, trace};
  if (grid.size() != 1) throw InputError{fmt::format("the lists ask for {} runs; expected one", grid.size())};
  const RunSpec spec = grid.at(0);
  const Result result = try_simulate(trace, spec, true);
  const SpecNames names = names_of(spec);
  const std::string limit = spec.capacity == kNoLimit ? "no limit" : to_text(spec.capacity);
  fmt::print("{}: {} on {}, {}, {}: {}\n", arguments.trace, names.policy, names.pool, spec.machine.name, limit,
             to_text(result.outcome));
  if (!result.message.empty()) fmt::print("{}\n", result.message);
  if (result.outcome == Outcome::kError) return 1;
  if (spec.steady && result.outcome == Outcome::kOk)
    fmt::print("{} of {} after {}; the step takes {}\n", result.cycle.settled ? "a cycle" : "the last",
               result.cycle.iterations == 1 ? "1 iteration" : fmt::format("{} iterations", result.cycle.iterations),
               result.cycle.lead_in, to_text(result.totals.makespan));
  const PlannedStep step{trace, result.realised};
  const History history = last_iterations(history_of(step.trace(), spec, result.realised), result.cycle.iterations);
  fmt::print("\n{}", view_text(step.trace(), history, spec.capacity,
                               {.width = terminal_width(), .colour = colour_wanted(), .utf8 = locale_is_utf8()}));
  for (const std::string& line : warnings(trace)) fmt::print(stderr, "{}: {}\n", arguments.trace, line);
  return 0;
}

const RegisterCommand kRegistered{
    {.name = "view",
     .summary = "a run in the terminal: memory over time, what the peak is made of, how busy the lanes are",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<Arguments>();
       app.add_option("trace", arguments->trace, "a trace, in any form that import reads").required();
       declare_grid_options(app, arguments->grid);
       return std::function<int()>{[arguments] { return run(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
