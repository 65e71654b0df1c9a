// tidepool sweep: many runs into a database, then a table and a plot of what memory costs.
#include "simulator/sweep.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <thread>

#include "simulator/bounds/bound_cache.hpp"
#include "simulator/commands/grid_options.hpp"
#include "simulator/numbers.hpp"
#include "simulator/plot.hpp"
#include "simulator/registry.hpp"
#include "simulator/result_json.hpp"
#include "simulator/table.hpp"
#include "traces/command.hpp"
#include "traces/error.hpp"
#include "traces/importer.hpp"

namespace tidepool {
namespace {

struct Arguments {
  std::vector<std::string> traces;
  GridText grid;
  std::string threads;
  std::string output = ":memory:";
  bool json = false, no_plot = false;
};

constexpr int kInterruptedCode = 130;  // as a shell reports SIGINT
std::atomic<bool> interrupted = false;

/// While it lives, the first Ctrl-C (or SIGTERM) asks the sweep to stop; a second one ends the program.
class Interruptible {
 public:
  Interruptible() {
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_int_);
    sigaction(SIGTERM, &action, &before_term_);
  }
  ~Interruptible() {
    sigaction(SIGINT, &before_int_, nullptr);
    sigaction(SIGTERM, &before_term_, nullptr);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  struct sigaction before_int_ = {}, before_term_ = {};
};

int thread_count(const std::string& text) {
  if (text.empty()) return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc{} || end != text.data() + text.size() || threads < 1 || threads > 1024)
    throw InputError{fmt::format("-j: '{}' is not a number of threads; expected 1 to 1024", text)};
  return threads;
}

/// Columns of the terminal, 80 if there is none.
std::size_t terminal_width() {
  winsize size = {};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  return 80;
}

void show_progress(const SweepProgress& now) {
  const std::size_t wanted = now.runs - now.present;
  const double rate = static_cast<double>(now.done) / std::max(now.seconds, 1e-9);
  fmt::print(stderr, "\r\x1b[K{} of {} runs, {} runs/s, {:.0f} s to go", grouped(static_cast<std::int64_t>(now.done)),
             grouped(static_cast<std::int64_t>(wanted)), short_number(rate),
             static_cast<double>(wanted - now.done) / std::max(rate, 1e-9));
  if (now.done == wanted) fmt::print(stderr, "\r\x1b[K");
}

void print_summary(const SweepProgress& end, const Arguments& arguments) {
  const bool kept = arguments.output != ":memory:";
  fmt::print(stderr, "{} runs in {:.2f} s: {} runs/s, {} actions/s", grouped(static_cast<std::int64_t>(end.done)),
             end.seconds, short_number(static_cast<double>(end.done) / std::max(end.seconds, 1e-9)),
             short_number(static_cast<double>(end.actions) / std::max(end.seconds, 1e-9)));
  if (end.present > 0) fmt::print(stderr, "; {} were there already", grouped(static_cast<std::int64_t>(end.present)));
  fmt::print(stderr, "{}\n", kept ? "; all are in " + arguments.output : "; nothing is kept without -o FILE");
  if (end.failed > 0)
    fmt::print(stderr, "{} failed, the first: {}\n", grouped(static_cast<std::int64_t>(end.failed)), end.first_failure);
}

/// The runs of one trace on one machine, out of the database.
struct Group {
  std::string machine_hash;
  Frontier frontier;
  std::vector<Point> points;
};

/// The bound of a run, as a share of the time without limits; infinite where no plan exists.
std::optional<double> bound_of(const Row& row) {
  const auto* bound = std::get_if<std::int64_t>(&at(row, "bound_ns"));
  const auto* baseline = std::get_if<std::int64_t>(&at(row, "baseline_ns"));
  if (bound && baseline && *baseline > 0) return static_cast<double>(*bound) / static_cast<double>(*baseline) - 1;
  if (!bound && std::holds_alternative<std::string>(at(row, "bound_kind")))
    return std::numeric_limits<double>::infinity();
  return {};
}

void add(std::vector<Group>& groups, std::size_t first, const SweepPart& part, const RunSpec& spec, const Row& row) {
  const std::string& machine = text_at(row, "machine_hash");
  const auto known = std::find_if(groups.begin() + static_cast<std::ptrdiff_t>(first), groups.end(),
                                  [&](const Group& group) { return group.machine_hash == machine; });
  Group& group = known != groups.end() ? *known : groups.emplace_back();
  group.machine_hash = machine;
  Frontier& frontier = group.frontier;
  frontier.trace = std::filesystem::path{part.trace.name}.filename().string();
  frontier.machine = spec.machine.name;
  frontier.ideal_peak = part.grid.ideal_peak();
  if (const auto* baseline = std::get_if<std::int64_t>(&at(row, "baseline_ns"))) frontier.baseline = Nanos{*baseline};
  Point point{.policy = spec.policy,
              .pool = spec.pool,
              .addresses = std::get<bool>(at(row, "addresses")),
              .capacity = spec.capacity,
              .outcome = find_outcome(text_at(row, "outcome"))};
  const BoundQuery query = query_of(part.trace.trace, spec);
  point.may = with_text(query.swap, query.remat);
  point.bound = bound_of(row);
  if (const auto* ratio = std::get_if<double>(&at(row, "overhead_ratio"))) point.overhead = *ratio - 1;
  group.points.push_back(std::move(point));
}

void print_results(std::span<const SweepPart> parts, const Database& database, const Arguments& arguments) {
  std::vector<Group> groups;
  for (const SweepPart& part : parts) {
    const std::size_t first = groups.size();
    for (std::size_t i = 0; i < part.grid.size(); ++i) {
      const RunSpec spec = part.grid.at(i);
      const std::optional<Row> row = database.find(run_key(part.trace.trace, spec));
      if (!row) continue;
      if (arguments.json)
        fmt::print("{}\n", to_json(*row));
      else
        add(groups, first, part, spec, *row);
    }
  }
  const std::size_t width = terminal_width();
  for (Group& group : groups) {
    arrange(group.points, group.frontier);
    fmt::print("\n{}", table(group.frontier, width));
    if (arguments.no_plot) continue;
    const bool colour = isatty(STDOUT_FILENO) != 0;
    if (const std::string drawn = plot(group.frontier, {.width = std::min<std::size_t>(width, 100), .colour = colour});
        !drawn.empty())
      fmt::print("\n{}", drawn);
  }
}

int run(const Arguments& arguments) {
  const int threads = thread_count(arguments.threads);
  std::vector<SweepPart> parts;
  for (const std::string& path : arguments.traces) {
    NamedTrace trace{path, load_trace(path)};
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const SweepPart& other) {
      return other.trace.trace.hash() == trace.trace.hash();
    });
    if (same != parts.end()) {
      fmt::print(stderr, "{}: the same step as {}; left out\n", path, same->trace.name);
      continue;
    }
    Grid grid{arguments.grid, trace.trace};
    parts.push_back({std::move(trace), std::move(grid)});
  }
  Database database{arguments.output};
  const Interruptible interruptible;
  SweepOptions options{.threads = threads, .progress = {}, .stop = &interrupted};
  if (isatty(STDERR_FILENO)) options.progress = show_progress;
  const SweepProgress end = sweep(parts, database, options);
  if (interrupted) {
    fmt::print(stderr, "{}interrupted: {} of {} runs are in {}; the same command goes on from there\n",
               isatty(STDERR_FILENO) ? "\n" : "", grouped(static_cast<std::int64_t>(end.present + end.done)),
               grouped(static_cast<std::int64_t>(end.runs)), arguments.output);
    return kInterruptedCode;
  }
  print_results(parts, database, arguments);
  std::fflush(stdout);  // what is told about it on stderr comes after it
  print_summary(end, arguments);
  return end.failed > 0 ? 1 : 0;
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
       app.add_flag("--json", arguments->json, "one JSON object for each run, on a line, instead of tables and plots");
       app.add_flag("--no-plot", arguments->no_plot, "tables only");
       return std::function<int()>{[arguments] { return run(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
