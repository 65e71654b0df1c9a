#include "simulator/studies/commands/sweep_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>

#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/least_capacity.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/text/interruptible.hpp"
#include "simulator/studies/text/terminal.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool {

namespace {

void print_json(const Answer& answer, const std::string& objective, const Row& row) {
  nlohmann::ordered_json object = to_json_object(row);
  object["find"] = objective;
  object["found"] = answer.found;
  object["runs_looked_at"] = answer.runs;
  object["capacities"] = answer.points;
  object["fails_above_bytes"] = nlohmann::ordered_json::array();
  for (const Bytes capacity : answer.fails_above) object["fails_above_bytes"].push_back(capacity.count());
  fmt::print("{}\n", json_text(object));
}

Bytes capacity_of(const Row& row) {
  const auto* bytes = std::get_if<std::int64_t>(&at(row, "capacity_bytes"));
  return bytes ? Bytes{*bytes} : kNoLimit;
}

std::string percent(const Value& value, double less) {
  const auto* number = std::get_if<double>(&value);
  return number ? fmt::format("{:.2f} %", (*number - less) * 100) : "-";
}

std::string overhead_text(const Row& row) { return percent(at(row, "overhead_ratio"), 1) + to_text(between_of(row)); }

std::string with_options(const Row& row) {
  const std::string& options = text_at(row, "options");
  return text_at(row, "policy") + (options.empty() ? "" : " (" + options + ")");
}

void print_line(const Answer& answer, const SweepPart& part, const Row& row, std::size_t policy_width,
                std::size_t pool_width) {
  const Bytes peak = part.grid.ideal_peak();
  const auto share = [&](Bytes capacity) { return fraction_text(capacity, peak); };
  const Bytes capacity = capacity_of(row);
  const bool ok = text_at(row, "outcome") == "ok";
  fmt::print("{:<{}}  {:<{}}  {:>4}  {:>12}  {:>7}  {:>9}  {:>9}  {} of {}", with_options(row), policy_width,
             text_at(row, "pool"), pool_width, value_text(at(row, "seed")),
             answer.found ? (capacity == kNoLimit ? "none" : to_text(capacity)) : "-",
             answer.found ? share(capacity) : "-", answer.found && ok ? overhead_text(row) : "-",
             answer.found ? percent(at(row, "gap"), 0) : "-", answer.runs, answer.points);
  if (!answer.found)
    fmt::print("  not even with {}: {}{}", share(capacity), text_at(row, "outcome"),
               ok ? ", overhead " + overhead_text(row) : "");
  if (!answer.fails_above.empty()) {
    fmt::print("  but not with");
    for (const Bytes above : answer.fails_above) fmt::print(" {}", share(above));
  }
  fmt::print("\n");
}

/// Prints a table for each trace and machine, or one JSON object for each answer. An object has the keys of the
/// answer's run, and "find", "found", "runs_looked_at", "capacities" and "fails_above_bytes".
void print_answers(std::span<const Answer> answers, const std::string& objective, std::span<const SweepPart> parts,
                   const Database& database, bool json) {
  std::size_t policy_width = 6, pool_width = 4;
  std::vector<Row> rows;
  for (const Answer& answer : answers) {
    rows.push_back(database.get(answer.key));
    policy_width = std::max(policy_width, with_options(rows.back()).size());
    pool_width = std::max(pool_width, text_at(rows.back(), "pool").size());
  }
  std::string title;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const SweepPart& part = parts[answers[i].part];
    if (json) {
      print_json(answers[i], objective, rows[i]);
      continue;
    }
    const std::string of_row = fmt::format("{} on {}: least memory for {}, peak {}", title_of(part, parts),
                                           text_at(rows[i], "machine"), objective, to_text(part.grid.ideal_peak()));
    if (of_row != title) {
      fmt::print("\n{}\n{:<{}}  {:<{}}  {:>4}  {:>12}  {:>7}  {:>9}  {:>9}  runs\n", of_row, "policy", policy_width,
                 "pool", pool_width, "seed", "capacity", "of peak", "overhead", "gap");
      title = of_row;
    }
    print_line(answers[i], part, rows[i], policy_width, pool_width);
  }
}

void show_progress(const SweepProgress& now) {
  const std::size_t wanted = now.runs - now.present;
  say("\r\x1b[K");
  if (now.done == 0 || now.done == wanted) return;
  const double rate = static_cast<double>(now.done) / std::max(now.seconds, 1e-9);
  say("{} of {} runs, {} runs/s", grouped(static_cast<std::int64_t>(now.done)),
      grouped(static_cast<std::int64_t>(wanted)), short_number(rate));
  if (now.seconds_to_go) say(", about {:.0f} s to go", std::max(*now.seconds_to_go, 1.0));
}

void print_summary(const SweepProgress& end, const Database& database) {
  const bool kept = database.path() != ":memory:";
  say("{} in {:.2f} s: {} runs/s, {} actions/s", counted(static_cast<std::int64_t>(end.done), "run"), end.seconds,
      short_number(static_cast<double>(end.done) / std::max(end.seconds, 1e-9)),
      short_number(static_cast<double>(end.actions) / std::max(end.seconds, 1e-9)));
  if (const std::size_t there = end.present - end.elsewhere; there > 0)
    say("; {} were there already", grouped(static_cast<std::int64_t>(there)));
  if (end.elsewhere > 0) say("; another sweep did {} meanwhile", grouped(static_cast<std::int64_t>(end.elsewhere)));
  say("{}\n", kept ? "; all are in " + database.path() : "; nothing is kept without -o FILE");
  if (end.unsettled > 0)
    say("{} did not settle within their iterations: their times are means over the last half of them\n",
        grouped(static_cast<std::int64_t>(end.unsettled)));
  if (end.failed > 0)
    say("{} failed, the first: {}\n", grouped(static_cast<std::int64_t>(end.failed)), end.first_failure);
}

/// The frontier of one trace on one machine, from the database.
struct Group {
  std::string machine_hash;
  Frontier frontier;
  std::vector<Point> points;
};

/// @param title  the name of the part's trace in tables and plots
void add(std::vector<Group>& groups, std::size_t first, const SweepPart& part, const std::string& title,
         const RunSpec& spec, const Row& row) {
  const std::string& machine = text_at(row, "machine_hash");
  const auto known = std::find_if(groups.begin() + static_cast<std::ptrdiff_t>(first), groups.end(),
                                  [&](const Group& group) { return group.machine_hash == machine; });
  Group& group = known != groups.end() ? *known : groups.emplace_back();
  group.machine_hash = machine;
  Frontier& frontier = group.frontier;
  frontier.trace = title;
  frontier.machine = spec.machine.name;
  frontier.ideal_peak = part.grid.ideal_peak();
  if (const auto* baseline = std::get_if<std::int64_t>(&at(row, "baseline_ns"))) frontier.baseline = Nanos{*baseline};
  group.points.push_back(point_of(row, spec.policy.text, spec.pool.text));
}

/// The state of an unfinished sweep: "120 of 240 runs are in r.sqlite; the same command goes on from there".
std::string kept(const SweepProgress& progress, const Database& database) {
  const std::string done =
      fmt::format("{} of {} runs are", grouped(static_cast<std::int64_t>(progress.present + progress.done)),
                  grouped(static_cast<std::int64_t>(progress.runs)));
  return database.path() == ":memory:"
             ? done + " above; with -o FILE, the same command goes on from there"
             : fmt::format("{} in {}; the same command goes on from there", done, database.path());
}

void print_interrupted(const SweepProgress& progress, const Database& database, bool terminal) {
  say("{}interrupted: {}\n", terminal ? "\n" : "", kept(progress, database));
}

/// Ends the program without waiting for the runs in progress, which may take hours. The runs that `progress` counts as
/// done have been written.
/// @param print  prints them
[[noreturn]] void end_at_once(const SweepProgress& progress, const Database& database, bool terminal,
                              const std::function<void()>& print) {
  print();
  database.leave_one_file();
  print_interrupted(progress, database, terminal);
  std::fflush(nullptr);
  std::_Exit(Interruptible::code());
}

}  // namespace

void declare_show_options(const CommandLine& app, SweepShow& show) {
  app.add_flag("--json", show.json, "one JSON object for each run, on a line, instead of tables and plots");
  app.add_flag("--no-plot", show.no_plot, "tables only");
}

int parse_threads(const std::string& text) {
  if (text.empty()) return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc{} || end != text.data() + text.size() || threads < 1 || threads > 1024)
    throw InputError{fmt::format("-j: '{}' is not a number of threads; expected 1 to 1024", text)};
  return threads;
}

void print_results(std::span<const SweepPart> parts, const Database& database, const Shard& shard,
                   const SweepShow& show) {
  std::vector<Group> groups;
  for (const SweepPart& part : parts) {
    const std::size_t first = groups.size();
    const std::string title = title_of(part, parts);
    for (std::size_t i = 0; i < part.grid.size(); ++i) {
      const RunSpec spec = part.grid.at(i);
      const std::string key = run_key(part.trace.trace, spec);
      if (!shard.has(key)) continue;
      const std::optional<Row> row = database.find(key);
      if (!row) continue;
      if (show.json)
        fmt::print("{}\n", to_json(*row));
      else
        add(groups, first, part, title, spec, *row);
    }
  }
  const std::size_t width = terminal_width();
  for (Group& group : groups) {
    arrange(group.points, group.frontier);
    fmt::print("\n{}", table(group.frontier, width));
    if (show.no_plot) continue;
    const bool colour = colour_wanted();
    if (const std::string drawn = plot(group.frontier, {.width = std::min<std::size_t>(width, 100), .colour = colour});
        !drawn.empty())
      fmt::print("\n{}", drawn);
  }
}

int run_sweep(const SweepOrder& order, std::span<const SweepPart> parts, Database& database, int threads,
              const SweepShow& show) {
  const Interruptible interruptible;
  SweepProgress last;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto print = [&] {
    if (order.find.empty()) print_results(parts, database, order.shard, show);
    std::fflush(stdout);  // so that the messages on stderr come after the results
  };
  const auto watch = [&](const SweepProgress& now) {
    last = now;
    if (terminal) show_progress(now);
    if (Interruptible::asked()) end_at_once(now, database, terminal, print);
  };
  const SweepOptions options{
      .threads = threads, .shard = order.shard, .progress = watch, .stop = &Interruptible::asked()};
  std::vector<Answer> answers;
  try {
    database.insert(SweepRequest{std::string{build_version()}, to_json(order)});
    if (order.find.empty())
      last = sweep(parts, database, options);
    else
      answers = find_least(parts, parse_objective(order.find), database, options, last);
  } catch (const Disagreement&) {
    throw;
  } catch (const std::runtime_error& error) {
    if (last.runs == 0) throw;
    throw std::runtime_error{fmt::format("{}; {}", error.what(), kept(last, database))};
  }
  print();
  if (Interruptible::asked()) {
    print_interrupted(last, database, terminal);
    return Interruptible::code();
  }
  if (!order.find.empty()) print_answers(answers, order.find, parts, database, show.json);
  std::fflush(stdout);
  print_summary(last, database);
  return last.failed > 0 ? 1 : 0;
}

}  // namespace tidepool
