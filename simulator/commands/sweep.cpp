// tidepool sweep: many runs into a database, then a table and a plot of what memory costs.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "simulator/commands/grid_options.hpp"
#include "simulator/commands/sweep_run.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"

namespace tidepool {
namespace {

struct Arguments {
  std::vector<std::string> traces;
  GridText grid;
  std::string threads, shard;
  std::string output = ":memory:";
  SweepShow show;
};

int run(const Arguments& arguments) {
  const int threads = parse_threads(arguments.threads);
  SweepOrder order{.traces = arguments.traces,
                   .hashes = {},
                   .grid = arguments.grid,
                   .shard = {},
                   .find = {},
                   .folder = std::filesystem::current_path().string()};
  if (!arguments.shard.empty()) {
    try {
      order.shard = parse_shard(arguments.shard);
    } catch (const InputError& error) {
      throw error.at("--shard");
    }
  }
  std::vector<SweepPart> parts = load_parts(order);  // bad input is refused before there is a database
  Database database{arguments.output};
  return run_sweep(order, parts, database, threads, arguments.show);
}

const RegisterCommand kRegistered{
    {.name = "sweep",
     .summary =
         "every combination of pools, policies, capacities, machines and seeds; resumes where it was interrupted",
     .declare = [](CLI::App& app) {
       const auto arguments = std::make_shared<Arguments>();
       app.add_option("traces", arguments->traces, "traces, in any form that import reads")->required();
       declare_grid_options(app, arguments->grid);
       app.add_option("-j,--threads", arguments->threads, "runs at a time; all cores if not given");
       app.add_option("-o,--output", arguments->output, "SQLite database that keeps the results")->type_name("FILE");
       app.add_option("--shard", arguments->shard,
                      "do only one of several shares of the runs, as in 2/8; merge puts the databases together");
       app.add_flag("--json", arguments->show.json,
                    "one JSON object for each run, on a line, instead of tables and plots");
       app.add_flag("--no-plot", arguments->show.no_plot, "tables only");
       return std::function<int()>{[arguments] { return run(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
