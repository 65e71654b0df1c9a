// tidepool report: one HTML file that shows the frontiers of sweeps, runs of one trace, what differs between two, or a
// job.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "simulator/engine/decisions/decision.hpp"
#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/advise/advise.hpp"
#include "simulator/studies/commands/simulate_job.hpp"
#include "simulator/studies/commands/sweep_run.hpp"
#include "simulator/studies/diff/compared.hpp"
#include "simulator/studies/launch/process.hpp"
#include "simulator/studies/report/history.hpp"
#include "simulator/studies/report/page.hpp"
#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/output.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kMostRuns = 12;

struct ReportArguments {
  std::vector<std::string> inputs;
  std::string output = "report.html";
  GridText grid;
  JobText job;
};

/// The command that makes the same report.
std::string command_of(const ReportArguments& arguments) {
  std::string text = "tidepool report";
  for (const std::string& input : arguments.inputs) text += " " + shell_word(input);
  const GridText standard;
  const auto add = [&](const char* option, const std::string& value, const std::string& usual) {
    if (value != usual) text += fmt::format(" {} {}", option, shell_word(value));
  };
  const GridText& grid = arguments.grid;
  add("--pool", grid.pool, standard.pool);
  add("--policy", grid.policy, standard.policy);
  add("--capacity", grid.capacity, standard.capacity);
  add("--machine", grid.machine, standard.machine);
  add("--seed", grid.seed, standard.seed);
  add("--assume", grid.assume, standard.assume);
  add("--overhead-limit", grid.overhead_limit, standard.overhead_limit);
  add("--iterations", grid.iterations, standard.iterations);
  if (grid.first) text += " --first";
  if (grid.count_search) text += " --count-search";
  const JobText& job = arguments.job;
  for (const auto& [option, value] : {std::pair{"--scale", &job.scale},
                                      {"--rank", &job.ranks},
                                      {"--of", &job.of},
                                      {"--collectives", &job.collectives}})
    if (*value) text += fmt::format(" {} {}", option, shell_word(**value));
  return text + " -o " + shell_word(arguments.output);
}

/// The rows of a database, sorted by trace, machine, pool, policy, options, capacity and seed.
std::vector<Row> rows_of(const std::string& path) {
  std::vector<Row> rows;
  Database{path, Database::Open::kExisting}.each([&](KeyedRow&& keyed) { rows.push_back(std::move(keyed.row)); });
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    for (const char* column :
         {"trace", "trace_hash", "machine", "machine_hash", "pool", "policy", "options", "capacity_bytes", "seed"})
      if (at(a, column) != at(b, column)) return at(a, column) < at(b, column);
    return false;
  });
  return rows;
}

ReportedRun run_one(const NamedTrace& trace, const Grid& grid, std::size_t index, BoundCache& bounds) {
  ReportedRun run;
  run.spec = grid.at(index);
  const auto keep = [&](const Decision& decision) { run.decisions.add(decision); };
  const Result result = or_error([&] { return simulate_explained(trace.trace, run.spec, true, keep); });
  run.decisions.leave_out_before(result.cycle.lead_in);
  if (result.outcome != Outcome::kError) {
    run.bound = bounds.find(trace.trace, run.spec);
    run.history = last_iterations(history_of(trace.trace, run.spec, result.realised), result.cycle.iterations);
    if (result.outcome == Outcome::kOutOfMemory || result.outcome == Outcome::kInfeasible)
      run.autopsy = autopsy_of(trace.trace, run.spec, *run.history);
  }
  run.row = make_row(trace, grid.ideal_peak(), run.spec, result, run.bound);
  if (std::holds_alternative<std::monostate>(at(run.row, "bound_kind"))) run.bound.reset();
  return run;
}

/// Advice for the first run that has less memory than the step's tensors take and no paper's assumptions; none if there
/// is no such run, or if no advice is possible for the step. Plans are left out: the report's runs already show some.
std::optional<ReportedAdvice> advice_for(const NamedTrace& trace, const ReportContent& content) {
  const auto run = std::find_if(content.runs.begin(), content.runs.end(), [&](const ReportedRun& one) {
    return one.spec.capacity < content.ideal_peak && one.spec.assume.name.empty();
  });
  if (run == content.runs.end()) return {};
  const AdvisedStep step = step_to_advise(trace.trace);
  if (!missing_for_advice(step.trace).empty()) return {};
  const PlanWords words{.trace = trace.name, .machine = run->spec.machine.name};
  return ReportedAdvice{
      run->spec.capacity,
      advise(step, words, run->spec, {.kinds = kinds_of_changes(), .planners = {}, .limit = kAdviceBeside})};
}

/// Whether an option of a run is given.
bool asks_for_runs(const GridText& text) {
  const auto all_of = [](const GridText& grid) {
    std::string all;
    for_each_text(grid, [&](const char*, const std::string& each) { all += each + '\n'; });
    return all;
  };
  return all_of(text) != all_of(GridText{}) || text.first || text.count_search;
}

/// The job as `simulate` runs it, without plans and memory limits. The capacities only serve to show when the tensors
/// of a rank exceed its capacity.
ReportedJob run_the_job(const std::string& path, const ReportArguments& arguments) {
  const GridText &grid = arguments.grid, standard;
  GridText rest = grid;
  rest.capacity = standard.capacity, rest.machine = standard.machine;
  if (asks_for_runs(rest))
    throw InputError{fmt::format(
        "{}: a report of a job shows it without plans; expected only --capacity and --machine of the options of a "
        "run",
        path)};
  ReportedJob shown{.name = path, .job = load_job(path), .result = {}, .capacities = {}};
  const Machine machine = find_machine(grid.machine);
  for (const Trace& trace : shown.job.traces)
    shown.capacities.push_back(grid.capacity == "machine" ? machine.capacity
                                                          : parse_capacity(grid.capacity, trace.ideal_peak()));
  const auto threads = static_cast<std::size_t>(parse_threads(arguments.job.threads.value_or("")));
  shown.result = run_job(shown.job, path, change_of(arguments.job), threads);
  return shown;
}

/// What differs between two traces, which are shown as they were recorded.
Compared compare_the_two(const std::string& a, const std::string& b, const ReportArguments& arguments) {
  if (arguments.inputs.size() > 2)
    throw InputError{fmt::format("{}: a second trace, after {}, and other inputs; expected the two alone", b, a)};
  if (asks_for_runs(arguments.grid))
    throw InputError{fmt::format(
        "{}: a second trace, after {}: a report of two shows what differs; expected no options of a run", b, a)};
  return compare_recordings(a, b);
}

/// Keeps what one stage frees for the next one: for a large snapshot, all together free several times what is held at
/// once, and new pages of the system take longer than what is done with them.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

int run_report(const ReportArguments& arguments) {
  keep_freed_memory();
  if (arguments.output.empty()) throw InputError{"-o: the name of the page is empty; expected one, as in report.html"};
  require_writable(arguments.output);
  ReportContent content;
  content.command = command_of(arguments);
  std::vector<std::string> traces;
  for (const std::string& path : arguments.inputs) {
    if (Database::is_ours(path)) {
      const std::vector<Frontier> frontiers = frontiers_of(rows_of(path));
      content.frontiers.insert(content.frontiers.end(), frontiers.begin(), frontiers.end());
      continue;
    }
    if (is_job_file(path)) {
      if (arguments.inputs.size() > 1)
        throw InputError{fmt::format("{}: a job and other inputs; expected the job alone", path)};
      content.job = run_the_job(path, arguments);
      continue;
    }
    traces.push_back(path);
  }
  if (!content.job) refuse_job_options(arguments.job, traces.empty() ? arguments.inputs.front() : traces[0]);
  if (traces.size() > 1) content.compared = compare_the_two(traces[0], traces[1], arguments);
  std::optional<NamedTrace> trace;
  if (traces.size() == 1) trace.emplace(NamedTrace{traces[0], load_for_runs(traces[0])});
  if (trace) {
    const Grid grid{arguments.grid, trace->trace};
    if (grid.size() > kMostRuns)
      throw InputError{
          fmt::format("the lists ask for {} runs; expected at most {}, as each is shown in full (the "
                      "database of a sweep may have any number)",
                      grid.size(), kMostRuns)};
    content.trace = &*trace;
    content.ideal_peak = grid.ideal_peak();
    BoundCache bounds;
    for (std::size_t i = 0; i < grid.size(); ++i) content.runs.push_back(run_one(*trace, grid, i, bounds));
    content.advice = advice_for(*trace, content);
  }
  const std::string page = report_page(content);
  write_file(arguments.output, page);
  const auto several = [](std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  if (content.job) {
    fmt::print("{}: {}, {}\n", printable(arguments.output), several(content.job->job.traces.size(), "rank"),
               to_text(Bytes{static_cast<std::int64_t>(page.size())}));
    return 0;
  }
  if (content.compared) {
    fmt::print("{}\n{}: {}\n", first_line(*content.compared), printable(arguments.output),
               to_text(Bytes{static_cast<std::int64_t>(page.size())}));
    return 0;
  }
  fmt::print("{}: {} in full, {}, {}\n", printable(arguments.output), several(content.runs.size(), "run"),
             several(content.frontiers.size(), "frontier"), to_text(Bytes{static_cast<std::int64_t>(page.size())}));
  return 0;
}

const RegisterCommand kReport{
    {.name = "report",
     .summary = "one HTML file, to be opened without a network: frontiers, memory over time, addresses, lanes",
     .seldom = seldom_grid_options(),
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<ReportArguments>();
       app.add_option(
              "inputs", arguments->inputs,
              "databases of sweep results, whose frontiers are drawn, and at most one trace, which is run again "
              "as the options say and shown in full; or two traces, to see what differs; or the job file of "
              "several ranks")
           .required();
       declare_grid_options(app, arguments->grid);
       declare_job_options(app, arguments->job);
       app.add_option("-o,--output", arguments->output, "the file to write").type_name("FILE").capture_default_str();
       return std::function<int()>{[arguments] { return run_report(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
