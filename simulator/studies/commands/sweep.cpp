// tidepool sweep: many runs into a database, then a table and a plot of overhead by capacity.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/options.hpp"
#include "simulator/studies/commands/simulate_job.hpp"
#include "simulator/studies/commands/sweep_run.hpp"
#include "simulator/studies/launch/farm.hpp"
#include "simulator/studies/launch/process.hpp"
#include "simulator/studies/sweep/least_capacity.hpp"
#include "simulator/studies/sweep/merge.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"

namespace tidepool {

namespace {

SweepOrder order_of(const SweepRequest& request, const std::string& path) {
  if (request.version != build_version())
    throw InputError{fmt::format("{}: its sweep was begun by tidepool {}; expected {}, as runs of two versions differ",
                                 path, request.version, build_version())};
  return naming(path, [&] { return parse_order(request.request); });
}

/// Puts the databases of several workers together; two results of one run are an error. @return  the exit code
int merge_databases(std::span<const std::string> sources, const std::string& output, bool any_version) {
  if (output == ":memory:")
    throw InputError{"-o: ':memory:' ends with the command; expected the name of a file, as in results.sqlite"};
  for (const std::string& path : sources) Database{path, Database::Open::kExisting};  // refuses wrong files
  Database into{output};
  const MergeCount count = merge(sources, into, any_version);
  say("{} added, {} known; {} in {}\n", counted(count.added, "run"), grouped(count.known), counted(into.runs(), "run"),
      output);
  return 0;
}

/// Does the runs that a database lacks, without their command line. @return  the exit code
int resume_sweep(const std::string& path, int threads, const SweepShow& show) {
  Database database{std::filesystem::absolute(path).string(), Database::Open::kExisting};
  const std::vector<SweepRequest> requests = database.requests();
  if (requests.empty()) throw InputError{fmt::format("{}: holds no sweep to resume", path)};
  std::vector<SweepOrder> orders;
  for (const SweepRequest& request : requests) orders.push_back(order_of(request, path));
  int code = 0;
  for (SweepOrder& order : joined(std::move(orders))) {
    std::error_code none;
    std::filesystem::current_path(order.folder, none);
    if (none)
      throw InputError{
          fmt::format("{}: the sweep was begun in {}: {}; expected that folder", path, order.folder, none.message())};
    const std::vector<SweepPart> parts = load_parts(order);
    code = std::max(code, run_sweep(order, parts, database, threads, show));
    if (code > 1) break;  // interrupted
  }
  return code;
}

constexpr const char* kFindCapacities = "0.05x..1.5x/146";  // every 1 % of the peak

struct SweepArguments {
  std::vector<std::string> traces;
  GridText grid;
  std::string threads, shard, find;
  bool capacity_given = false;
  std::string output = ":memory:";
  bool any_version = false, slurm = false;
  std::string slurm_options, hosts;
  int shards = 0;  // 0: usual_shards()
  std::string validate;
  PlanExecutorOptions execution;
  SweepShow show;
};

bool elsewhere(const SweepArguments& arguments) { return arguments.slurm || !arguments.hosts.empty(); }

/// Reads hosts from a list, or from a file with one host on each line.
std::vector<std::string> read_hosts(const std::string& text) {
  std::ifstream file{text};
  if (!file) return split_list(text);
  std::vector<std::string> hosts;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') hosts.push_back(line);
  if (hosts.empty()) throw InputError{fmt::format("--hosts: {} names no host; expected one on each line", text)};
  return hosts;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> all;
  for (std::string word; stream >> word;) all.push_back(word);
  return all;
}

void check(const SweepArguments& arguments) {
  for (const std::string& trace : arguments.traces)
    if (!is_utf8(trace))
      throw InputError{fmt::format("{}: its name is not UTF-8; expected a name that a database can keep", trace)};
  const PlanExecutorOptions& execution = arguments.execution;
  if (execution.move && (arguments.validate.empty() || execution.backend != "host"))
    throw InputError{"--move: expected --validate with --backend host"};
  if (execution.backend != "host" && arguments.validate.empty())
    throw InputError{
        fmt::format("--backend: '{}' is for --validate, which is not given; expected both", execution.backend)};
  if (!arguments.validate.empty() && (arguments.show.json || elsewhere(arguments)))
    throw InputError{"--validate: expected without --json, --slurm and --hosts"};
  if (arguments.slurm && !arguments.hosts.empty())
    throw InputError{"--hosts: given with --slurm; expected one of them"};
  if (!elsewhere(arguments)) {
    if (arguments.shards != 0 || !arguments.slurm_options.empty())
      throw InputError{fmt::format("{}: expected --slurm{}", arguments.shards != 0 ? "--shards" : "--slurm-options",
                                   arguments.shards != 0 ? " or --hosts" : "")};
    return;
  }
  const char* option = arguments.slurm ? "--slurm" : "--hosts";
  if (arguments.output == ":memory:")
    throw InputError{fmt::format("{}: expected -o FILE, where the results are collected", option)};
  if (!arguments.find.empty()) throw InputError{fmt::format("--find: expected no {}; few runs are needed", option)};
  if (!arguments.shard.empty()) throw InputError{fmt::format("--shard: expected no {}, which chooses shards", option)};
  if (!arguments.slurm) read_hosts(arguments.hosts);  // refuses a file without hosts
  require_program(arguments.slurm ? "sbatch" : "parallel");
}

/// Runs the shards on Slurm or other hosts and shows the results. @return  the exit code
int run_elsewhere(const SweepArguments& arguments, const SweepOrder& sweep, std::span<const SweepPart> parts,
                  Database& database, bool is_new) {
  const std::string threads =
      arguments.threads.empty() && arguments.slurm ? "${SLURM_CPUS_PER_TASK:-1}" : arguments.threads;
  const FarmOrder order{.sweep = sweep,
                        .program = std::filesystem::read_symlink("/proc/self/exe").string(),
                        .threads = threads,
                        .results = std::filesystem::absolute(arguments.output).string(),
                        .shards = arguments.shards > 0 ? arguments.shards : usual_shards(parts)};
  const auto launcher = arguments.slurm ? make_slurm_launcher(words(arguments.slurm_options))
                                        : make_host_launcher(read_hosts(arguments.hosts));
  const Interruptible interruptible;
  const FarmResult result = [&] {
    try {
      return farm(order, parts, database, *launcher, Interruptible::asked());
    } catch (...) {
      if (std::error_code none; is_new && !std::filesystem::exists(order.results + ".shards"))
        std::filesystem::remove(arguments.output, none);  // what began is undone
      throw;
    }
  }();
  const auto count = [](std::size_t number) { return grouped(static_cast<std::int64_t>(number)); };
  const std::string progress =
      fmt::format("{} of {} runs are in {}", count(result.runs - result.missing), count(result.runs), arguments.output);
  if (Interruptible::asked()) {
    say("interrupted: {}; the same command goes on from there\n", progress);
    return Interruptible::code();
  }
  if (result.missing > 0)
    throw std::runtime_error{fmt::format("{}; {} did not finish in two tries; {} messages are in {}", progress,
                                         counted(static_cast<std::int64_t>(result.shards.size()), "shard"),
                                         result.shards.size() == 1 ? "its" : "their", result.folder)};
  print_results(parts, database, {}, arguments.show);
  std::fflush(stdout);
  say("all {} runs are in {}\n", count(result.runs), arguments.output);
  return 0;
}

int run_sweep(const SweepArguments& arguments) {
  const int threads = parse_threads(arguments.threads);
  check(arguments);
  SweepOrder order{.traces = arguments.traces,
                   .hashes = {},
                   .grid = arguments.grid,
                   .shard = {},
                   .find = {},
                   .folder = std::filesystem::current_path().string()};
  if (!arguments.shard.empty()) order.shard = naming("--shard", [&] { return parse_shard(arguments.shard); });
  if (!arguments.find.empty()) {
    naming("--find", [&] { static_cast<void>(parse_objective(arguments.find)); });
    order.find = arguments.find;
    if (!arguments.capacity_given) order.grid.capacity = kFindCapacities;
  }
  std::vector<SweepPart> parts = load_parts(order);  // bad input is refused before there is a database
  const auto executor = arguments.validate.empty() ? nullptr : make_plan_executor(arguments.execution);
  const auto validated = executor ? parse_validated(arguments.validate) : std::nullopt;
  const bool is_new = !std::filesystem::exists(arguments.output);
  Database database{arguments.output};
  if (elsewhere(arguments)) return run_elsewhere(arguments, order, parts, database, is_new);
  const int code = run_sweep(order, parts, database, threads, arguments.show);
  if (executor == nullptr || Interruptible::asked()) return code;
  return std::max(code, validate_runs(parts, validated, arguments.execution.backend, *executor, database));
}

/// Merges databases, or goes on with the only one. @param given  all options of the command line
int run_databases(const SweepArguments& arguments, const std::vector<std::string>& given) {
  const bool merges = arguments.traces.size() > 1 || std::find(given.begin(), given.end(), "--output") != given.end();
  const std::vector<std::string> known = merges ? std::vector<std::string>{"--output", "--any-version"}
                                                : std::vector<std::string>{"--threads", "--json", "--no-plot"};
  for (const std::string& name : given)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw InputError{fmt::format("{}: {} {}; expected {} only", name, arguments.traces[0],
                                   merges ? "is merged with others" : "has the options of its sweep",
                                   fmt::join(known, ", "))};
  if (!merges) return resume_sweep(arguments.traces[0], parse_threads(arguments.threads), arguments.show);
  return merge_databases(arguments.traces, arguments.output, arguments.any_version);
}

const RegisterCommand kSweep{
    {.name = "sweep",
     .summary =
         "every combination of pools, policies, capacities, machines and seeds; resumes where it was interrupted",
     .seldom = {"--seed", "--overhead-limit", "--no-plot", "--shard", "--any-version", "--slurm", "--slurm-options",
                "--hosts", "--shards", "--backend", "--move", "--assume", "--iterations", "--count-search"},
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<SweepArguments>();
       app.add_option("traces", arguments->traces,
                      "traces, in any form that import reads; or what sweep -o wrote: "
                      "one database to go on with, or several to merge into -o")
           .required();
       declare_grid_options(app, arguments->grid);
       app.add_option("-j,--threads", arguments->threads, "runs at a time; all cores if not given");
       app.add_option("-o,--output", arguments->output, "SQLite database that keeps the results").type_name("FILE");
       app.add_option(
           "--shard", arguments->shard,
           "do only one of several shares of the runs, as in 2/8; sweep 1.sqlite 2.sqlite -o ALL.sqlite merges them");
       app.add_flag("--any-version", arguments->any_version,
                    "merge runs of different versions of tidepool; these are different runs");
       app.add_option(
           "--find", arguments->find,
           "least capacity, of those given (default: every 1 % of the peak up to 1.5x), that reaches "
           "overhead<1%, gap<2% or outcome=ok; bisects, so that few runs are done, and tries the neighbours");
       app.add_flag("--slurm", arguments->slurm,
                    "do the runs on Slurm: submits a job array, waits, collects, submits failed shards once more");
       app.add_option("--slurm-options", arguments->slurm_options,
                      "further options for sbatch, as in '--partition=short --mem=4G'");
       app.add_option("--hosts", arguments->hosts,
                      "do the runs on these hosts through GNU parallel and ssh: a,b,c or a file; : is this host");
       app.add_option("--shards", arguments->shards,
                      "tasks for --slurm or --hosts (default: 1 for 50 runs, at most 64)")
           .range(std::int64_t{1}, std::int64_t{100'000});
       app.add_option("--validate", arguments->validate,
                      "then execute plans on real memory and keep the measurements: all plans of pools with addresses, "
                      "or for each trace and machine this many, of the fastest runs at the least capacities");
       app.add_option("--backend", arguments->execution.backend, "of --validate: host (default) or cuda");
       app.add_flag("--move", arguments->execution.move,
                    "of --validate --backend host: measure time too, with copies that move their bytes; with the "
                    "machine file of calibrate --backend host");
       declare_show_options(app, arguments->show);
       return std::function<int()>{[arguments, app] {
         arguments->capacity_given = app.count("--capacity") > 0;
         std::vector<std::string> inputs = arguments->traces;
         const auto traces = std::stable_partition(inputs.begin(), inputs.end(), Database::is_ours);
         if (traces == inputs.end()) return run_databases(*arguments, app.given());
         if (traces != inputs.begin())
           throw InputError{
               fmt::format("{}: is no database, as others are; expected traces, or databases alone", *traces)};
         if (arguments->any_version) throw InputError{"--any-version: expected databases to merge"};
         return run_sweep(*arguments);
       }};
     }}};

}  // namespace

}  // namespace tidepool
