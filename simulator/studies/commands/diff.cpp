// tidepool diff: what differs between two recordings of a job, two plans, or two sets of results.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/plan_file.hpp"
#include "simulator/result.hpp"
#include "simulator/studies/diff/compared.hpp"
#include "simulator/studies/diff/plan_diff.hpp"
#include "simulator/studies/sweep/compare.hpp"
#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/job/job.hpp"
#include "traces/names.hpp"
#include "traces/program_names.hpp"
#include "traces/step/trace_diff.hpp"
#include "traces/trace.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

struct DiffArguments {
  std::string a, b;
  std::size_t show = 10;
  std::optional<std::string> max_growth;
  std::string trace;
  bool json = false;
};

/// Whether an argument names results of a sweep: a database, or some of its runs as in FILE:policy=dtr.
bool names_results(const std::string& text) {
  if (std::error_code error; std::filesystem::exists(text, error)) return Database::is_ours(text);
  return Database::is_ours(text.substr(0, text.find(':')));
}

std::string signed_text(Bytes bytes) { return (bytes < Bytes{} ? "-" : "+") + to_text(std::max(bytes, -bytes)); }

void print_rows(const Compared& found, std::size_t show, bool at_peak) {
  std::size_t rows = 0;
  for (const DifferenceRow& row : found.diff.rows) {
    if ((row.at_peak != Bytes{}) != at_peak || rows++ >= show) continue;
    fmt::print("  {:>12}  {:<8} {:<16} {}, {}\n", signed_text(at_peak ? row.at_peak : row.bytes), word(row.change),
               word(row.kind), cause_text(row), counted(row.buffers, "buffer"));
    if (const std::string ends = ends_text(found, row); !ends.empty()) fmt::print("                {}\n", ends);
  }
  if (rows > show) fmt::print("  {} others (--show {})\n", grouped(static_cast<std::int64_t>(rows - show)), rows);
}

void print_text(const Compared& found, std::size_t show) {
  const TraceDiff& diff = found.diff;
  fmt::print("{}\n", first_line(found));
  if (found.same()) return;
  if (diff.only_a + diff.only_b > 0)
    fmt::print("{} in both; {} in {} only, {} in {} only\n",
               counted(static_cast<std::int64_t>(diff.paired_ops), found.a.ops().empty() ? "allocation" : "op"),
               grouped(static_cast<std::int64_t>(diff.only_a)), found.name_a,
               grouped(static_cast<std::int64_t>(diff.only_b)), found.name_b);
  if (diff.first_b.valid() || diff.first_a.valid()) {
    const bool in_b = diff.first_b.valid();
    fmt::print("first difference: {} of {}\n", op_text(in_b ? found.b : found.a, in_b ? diff.first_b : diff.first_a),
               in_b ? found.name_b : found.name_a);
  }
  if (found.both_stated())
    fmt::print("reserved by the allocator: {} for {}\n", to_text(found.stated_b.reserved),
               to_text(found.stated_a.reserved));
  const Trace& high = diff.at_b ? found.b : found.a;
  const auto any = [&](bool at_peak) {
    return std::ranges::any_of(diff.rows, [&](const auto& row) { return (row.at_peak != Bytes{}) == at_peak; });
  };
  if (any(true)) {
    fmt::print("\nat the peak of {}{}: {} alive, {} at the same place in {}\n", diff.at_b ? found.name_b : found.name_a,
               diff.instant.op.valid() ? ", " + op_text(high, diff.instant.op) : "", to_text(diff.instant.live),
               to_text(diff.other), diff.at_b ? found.name_a : found.name_b);
    print_rows(found, show, true);
  }
  if (any(false)) {
    fmt::print("\nat other times\n");
    print_rows(found, show, false);
  }
}

/// Whether B stays within the growth that the user allows, by content and by what the allocator reserved.
bool within(const Compared& found, double growth) {
  const auto grew = [&](Bytes a, Bytes b) {
    return static_cast<double>(b.count()) > static_cast<double>(a.count()) * (1 + growth);
  };
  return !grew(found.diff.peak_a, found.diff.peak_b) &&
         !(found.both_stated() && grew(found.stated_a.reserved, found.stated_b.reserved));
}

/// A run in words: "dtr on best-fit, resnet50.tide, a100-pcie4, 0.5x, seed 1".
std::string run_name(const Row& row) {
  const auto text = [&](std::string_view column) { return value_text(at(row, column)); };
  const auto* capacity = std::get_if<std::int64_t>(&at(row, "capacity_bytes"));
  const auto* peak = std::get_if<std::int64_t>(&at(row, "ideal_peak_bytes"));
  const std::string options = text("options");
  return fmt::format("{} on {}{}, {}, {}, {}, seed {}", text("policy"), text("pool"),
                     options.empty() ? "" : " (" + options + ")",
                     std::filesystem::path{text("trace")}.filename().string(), text("machine"),
                     fraction_text(capacity ? Bytes{*capacity} : kNoLimit, Bytes{peak ? *peak : 0}), text("seed"));
}

std::string percent(double relative) { return fmt::format("{:+.2f} %", relative * 100); }

/// A column's name and its values in two rows: "makespan_ns 12 -> 15".
std::string moved_value(const Row& a, const Row& b, std::string_view column) {
  return fmt::format("{} {} -> {}", column, value_text(at(a, column)), value_text(at(b, column)));
}

void print_columns(const ResultComparison& comparison) {
  std::size_t width = 6;
  for (const MovedColumn& column : comparison.columns) width = std::max(width, column.name.size());
  fmt::print("\n{:<{}}  {:>8}  {:>10}  {:>10}  {:>10}\n", "column", width, "runs", "least", "median", "most");
  for (const MovedColumn& column : comparison.columns) {
    const std::vector<double>& relative = column.relative;
    const auto at_share = [&](std::size_t of, std::size_t parts) {
      return relative.empty() ? "-" : percent(relative[(relative.size() - 1) * of / parts]);
    };
    fmt::print("{:<{}}  {:>8}  {:>10}  {:>10}  {:>10}\n", column.name, width, grouped(column.runs), at_share(0, 1),
               at_share(1, 2), at_share(1, 1));
  }
}

void print_moved(const ResultComparison& comparison, const Database& a, const Database& b, std::size_t show) {
  fmt::print("\nmost changed\n");
  for (std::size_t i = 0; i < std::min(show, comparison.moved.size()); ++i) {
    const Row row_a = a.get(comparison.moved[i].key_a), row_b = b.get(comparison.moved[i].key_b);
    std::string values;
    for (const char* column : {"outcome", "makespan_ns"})
      if (at(row_a, column) != at(row_b, column)) values += "; " + moved_value(row_a, row_b, column);
    if (values.empty()) values = "; " + moved_value(row_a, row_b, moved_results(row_a, row_b).at(0));
    const std::string name_a = run_name(row_a), name_b = run_name(row_b);
    fmt::print("  {}{}{}\n", name_a, name_a == name_b ? "" : " -> " + name_b, values);
  }
}

void print_only(const std::vector<std::string>& keys, const ResultSelection& selection, const Database& database) {
  if (keys.empty()) return;
  fmt::print("only in {}: {}, such as {} ({})\n", selection.text, grouped(static_cast<std::int64_t>(keys.size())),
             run_name(database.get(keys[0])), keys[0]);
}

void print(const ResultComparison& comparison, const ResultSelection& a, const Database& in_a, const ResultSelection& b,
           const Database& in_b, std::size_t show) {
  const auto count = [](auto number) { return grouped(static_cast<std::int64_t>(number)); };
  if (comparison.same()) {
    fmt::print("identical: {}\n", counted(static_cast<std::int64_t>(comparison.identical), "run"));
    return;
  }
  const auto both =
      static_cast<std::int64_t>(comparison.moved.size()) + static_cast<std::int64_t>(comparison.identical);
  fmt::print("{} in both, {} of them different\n", counted(both, "run"), count(comparison.moved.size()));
  print_only(comparison.only_a, a, in_a);
  print_only(comparison.only_b, b, in_b);
  if (const auto& apart = comparison.apart; !apart.column.empty())
    fmt::print("they differ in {}, as in {} and {}; {}:{}={} and {}:{}={} are compared\n", apart.column, apart.a,
               apart.b, a.path, apart.column, apart.a, b.path, apart.column, apart.b);
  for (const auto& [change, runs] : comparison.outcomes)
    fmt::print("{} -> {}: {}\n", change.first, change.second, count(runs));
  if (comparison.moved.empty()) return;
  print_columns(comparison);
  print_moved(comparison, in_a, in_b, show);
}

Json json_of(const ResultComparison& comparison, const Database& a, const Database& b, std::size_t show) {
  Json outcomes = Json::array(), columns = Json::array(), moved = Json::array();
  for (const auto& [change, runs] : comparison.outcomes)
    outcomes.push_back({{"from", change.first}, {"to", change.second}, {"runs", runs}});
  for (const auto& [name, runs, relative] : comparison.columns) {
    Json column{{"name", name}, {"runs", runs}};
    if (!relative.empty()) {
      column["least"] = relative.front();
      column["median"] = relative[(relative.size() - 1) / 2];
      column["most"] = relative.back();
    }
    columns.push_back(std::move(column));
  }
  for (std::size_t i = 0; i < std::min(show, comparison.moved.size()); ++i)
    moved.push_back({{"a", to_json_object(a.get(comparison.moved[i].key_a))},
                     {"b", to_json_object(b.get(comparison.moved[i].key_b))}});
  return {{"identical", comparison.same()},
          {"same_runs", comparison.identical},
          {"moved_runs", comparison.moved.size()},
          {"only_a", comparison.only_a.size()},
          {"only_b", comparison.only_b.size()},
          {"outcomes", outcomes},
          {"columns", columns},
          {"most_changed", moved}};
}

/// Compares two selections of runs (see parse_selection). @return  0 if nothing moved, else 1
int diff_results(const std::string& text_a, const std::string& text_b, std::size_t show, bool json) {
  const ResultSelection a = parse_selection(text_a), b = parse_selection(text_b);
  const Database in_a{a.path, Database::Open::kExisting}, in_b{b.path, Database::Open::kExisting};
  const ResultComparison comparison = compare(a, in_a, b, in_b);
  if (json)
    fmt::print("{}\n", json_text(json_of(comparison, in_a, in_b, show)));
  else
    print(comparison, a, in_a, b, in_b, show);
  return comparison.same() ? 0 : 1;
}

void print_text(const ComparedPlans& found, std::size_t show) {
  fmt::print("{}\n", first_line(found));
  if (found.diff.same_actions) return;
  const std::size_t width = std::max(found.name_a.size(), found.name_b.size());
  for (const auto& [name, plan] : {std::pair{&found.name_a, &found.a}, {&found.name_b, &found.b}}) {
    const Totals& cost = plan->predicted;
    fmt::print("{:<{}}  {} on {}: peak {}, {} recomputed, {} swapped out, {} swapped in, {} stalled\n", *name, width,
               plan->spec.policy.text, plan->spec.pool.text, to_text(cost.peak), to_text(cost.recompute),
               to_text(cost.swap_out), to_text(cost.swap_in), to_text(cost.stall.compute));
  }
  if (const std::string first = first_decision_text(found); !first.empty()) fmt::print("{}\n", first);
  for (const FateGroup& group : found.diff.groups) {
    fmt::print("\n{} in {}, {} in {}: {}, {}\n", word(group.a), found.name_a, word(group.b), found.name_b,
               counted(group.tensors, "tensor"), to_text(group.bytes));
    std::size_t rows = 0;
    for (const FateDifference& each : found.diff.tensors)
      if (each.a == group.a && each.b == group.b && rows++ < show)
        fmt::print("  {:>12}  {}\n", to_text(each.bytes), tensor_name(found, each));
    if (rows > show) fmt::print("  {} others (--show {})\n", grouped(static_cast<std::int64_t>(rows - show)), rows);
  }
}

int diff_two_plans(const DiffArguments& arguments) {
  if (arguments.max_growth) refuse("--max-growth: expected it with traces; a plan has the peak that it was made for");
  const ComparedPlans found = compare_plans(arguments.a, arguments.b, arguments.trace);
  if (arguments.json)
    fmt::print("{}\n", json_text(to_json(found)));
  else
    print_text(found, arguments.show);
  return found.diff.same_actions ? 0 : 1;
}

/// The recordings of each rank that both jobs have.
std::vector<Compared> compare_ranks(const DiffArguments& arguments) {
  LoadedJob a = load_job(arguments.a), b = load_job(arguments.b);
  if (a.traces.size() != b.traces.size())
    refuse("{}: {} ranks; expected {}, as in {}", printable(arguments.b), b.traces.size(), a.traces.size(),
           printable(arguments.a));
  std::vector<Compared> ranks;
  for (std::size_t i = 0; i < a.traces.size(); ++i)
    ranks.push_back(compare_recordings(fmt::format("rank {} of {}", i, arguments.a), std::move(a.traces[i]),
                                       fmt::format("rank {} of {}", i, arguments.b), std::move(b.traces[i])));
  return ranks;
}

/// Compares two jobs rank by rank; the rank whose peak has changed most comes first.
int diff_jobs(const DiffArguments& arguments, std::optional<double> growth) {
  std::vector<Compared> ranks = compare_ranks(arguments);
  const auto all = [&](auto test) { return std::ranges::all_of(ranks, test); };
  const bool same = all([](const Compared& rank) { return rank.same(); });
  std::ranges::stable_sort(ranks, std::greater{}, [](const Compared& rank) {
    const Bytes higher = rank.diff.peak_b - rank.diff.peak_a;
    return std::tuple{!rank.same(), std::max(higher, -higher)};
  });
  if (arguments.json) {
    Json each = Json::array();
    for (const Compared& rank : ranks) each.push_back(to_json(rank));
    fmt::print("{}\n", json_text(Json{{"identical", same}, {"ranks", each}}));
  } else if (same) {
    fmt::print("no difference in {}\n", counted(static_cast<std::int64_t>(ranks.size()), "rank"));
  } else {
    print_text(ranks[0], arguments.show);
    fmt::print("\nother ranks\n");
    for (const Compared& rank : std::span{ranks}.subspan(1)) fmt::print("  {}\n", first_line(rank));
  }
  return (growth ? all([&](const Compared& rank) { return within(rank, *growth); }) : same) ? 0 : 1;
}

int run_diff(const DiffArguments& arguments) {
  if (is_plan_file(arguments.a) && is_plan_file(arguments.b)) return diff_two_plans(arguments);
  if (!arguments.trace.empty()) refuse("--trace: expected it with two plans");
  if (names_results(arguments.a) || names_results(arguments.b)) {
    if (arguments.max_growth) refuse("--max-growth: expected it with traces, as results of sweeps have no growth");
    return diff_results(arguments.a, arguments.b, arguments.show, arguments.json);
  }
  const std::optional<double> growth =
      arguments.max_growth ? naming("--max-growth", [&] { return parse_share(*arguments.max_growth); }) : std::nullopt;
  if (arguments.max_growth && !growth)
    refuse("--max-growth: '{}' is no share; expected a number and %, as in 1%", *arguments.max_growth);
  if (is_job_file(arguments.a) && is_job_file(arguments.b)) return diff_jobs(arguments, growth);
  const Compared found = compare_recordings(arguments.a, arguments.b);
  if (arguments.json)
    fmt::print("{}\n", json_text(to_json(found)));
  else
    print_text(found, arguments.show);
  return (growth ? within(found, *growth) : found.same()) ? 0 : 1;
}

const RegisterCommand kDiff{
    {.name = "diff",
     .summary =
         "what differs between two traces, and which line of code causes it; or between two plans, or two sets of "
         "results",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<DiffArguments>();
       app.add_option("a", arguments->a,
                      "a trace, in any form that import reads, or the job file of several ranks; or a plan; or what "
                      "sweep -o wrote, or some of its runs: "
                      "FILE:COLUMN=VALUE,... as in r.sqlite:policy=dtr or r.sqlite:run=1f00")
           .required();
       app.add_option("b", arguments->b, "the same, to compare with").required();
       app.add_option("--show", arguments->show, "rows of each table, and runs that are named").capture_default_str();
       app.add_option(
           "--max-growth", arguments->max_growth,
           "exit code 0 if the peak of B, and what its allocator reserved, is at most this share above that of "
           "A, as in 1%");
       app.add_option("--trace", arguments->trace, "the trace that two plans are for");
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run_diff(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
