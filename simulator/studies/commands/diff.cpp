// tidepool diff: what differs between two recordings of a job, or between two sets of results.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "simulator/engine/machine/capacity.hpp"
#include "simulator/studies/fit/stated_memory.hpp"
#include "simulator/studies/sweep/compare.hpp"
#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/result_json.hpp"
#include "traces/base/command.hpp"
#include "traces/base/counted.hpp"
#include "traces/base/json_text.hpp"
#include "traces/base/numbers.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/utf8.hpp"
#include "traces/import/importer.hpp"
#include "traces/names.hpp"
#include "traces/program_names.hpp"
#include "traces/step/trace_diff.hpp"

namespace tidepool {

template <>
std::span<const std::string_view> words<Difference>() {
  static constexpr std::array<std::string_view, 6> kWords{"new", "gone", "larger", "smaller", "longer", "shorter"};
  return kWords;
}

namespace {

using Json = nlohmann::ordered_json;

struct DiffArguments {
  std::string a, b;
  std::size_t show = 10;
  std::optional<std::string> max_growth;
  bool json = false;
};

/// Two traces with the names under which messages have them, and what differs.
struct Compared {
  std::string name_a, name_b;
  Trace a, b;
  StatedMemory stated_a, stated_b;
  TraceDiff diff;

  bool same_reserved() const { return stated_a.reserved == stated_b.reserved || !both_stated(); }
  bool both_stated() const { return stated_a.reserved > Bytes{} && stated_b.reserved > Bytes{}; }
  bool same() const { return diff.same() && same_reserved(); }
};

/// Whether an argument names results of a sweep: a database, or some of its runs as in FILE:policy=dtr.
bool names_results(const std::string& text) {
  if (std::error_code error; std::filesystem::exists(text, error)) return Database::is_ours(text);
  return Database::is_ours(text.substr(0, text.find(':')));
}

std::string signed_text(Bytes bytes) { return (bytes < Bytes{} ? "-" : "+") + to_text(std::max(bytes, -bytes)); }

/// "clone.py:19", "head and 12 other modules".
std::string cause_text(const DifferenceRow& row) {
  if (row.cause.empty()) return "from before the recorded step";
  return row.causes == 1
             ? row.cause
             : fmt::format("{} and {}", row.cause, counted(static_cast<std::int64_t>(row.causes) - 1, "other module"));
}

/// "activation, clone.py:19".
std::string holder(const DifferenceRow& row) {
  return fmt::format("{}{}", row.kind == BufferKind::kUnknown ? "" : std::string{word(row.kind)} + ", ",
                     cause_text(row));
}

/// Where a trace frees buffers whose ends differ: "to op 3, aten::mm (model.py:12)", "to its end".
std::string until_text(const Trace& trace, OpId op) {
  return op.valid() ? "to " + op_text(trace, op) : "to the end of the step";
}

/// Where the buffers of a row end in both traces.
std::string ends_text(const Compared& found, const DifferenceRow& row) {
  return fmt::format("{} in {}, {} in {}", until_text(found.b, row.until_b), found.name_b,
                     until_text(found.a, row.until_a), found.name_a);
}

std::string reason_text(const DifferenceRow& row, Bytes bytes) {
  const std::string size = to_text(std::max(bytes, -bytes));
  switch (row.change) {
    case Difference::kNew:
      return fmt::format("{} are new: {}", size, holder(row));
    case Difference::kGone:
      return fmt::format("{} are gone: {}", size, holder(row));
    case Difference::kLarger:
      return fmt::format("{} because of larger buffers: {}", size, holder(row));
    case Difference::kSmaller:
      return fmt::format("{} because of smaller buffers: {}", size, holder(row));
    case Difference::kLonger:
      return fmt::format("{} live longer: {}", size, holder(row));
    case Difference::kShorter:
      break;
  }
  return fmt::format("{} live shorter: {}", size, holder(row));
}

/// The answer in one sentence.
std::string first_line(const Compared& found) {
  const TraceDiff& diff = found.diff;
  if (found.same())
    return fmt::format("no difference: {}, {}, peak {}", counted(static_cast<std::int64_t>(diff.paired_ops), "op"),
                       counted(static_cast<std::int64_t>(found.a.buffers().size()), "buffer"), to_text(diff.peak_a));
  const std::string reserved = fmt::format("{} reserves {} for {}: fragmentation", found.name_b,
                                           to_text(found.stated_b.reserved), to_text(found.stated_a.reserved));
  if (diff.same()) return "the same buffers, but " + reserved;
  const std::string_view first = diff.first_b.valid()   ? found.b.text(found.b.op(diff.first_b).line)
                                 : diff.first_a.valid() ? found.a.text(found.a.op(diff.first_a).line)
                                                        : "";
  const auto reason = [&](const DifferenceRow& row, Bytes bytes) {
    std::string where;
    if (!row.by_line && !first.empty())
      where = fmt::format(" (first difference: {})", first);
    else if (!row.by_line && (row.change == Difference::kLonger || row.change == Difference::kShorter))
      where = fmt::format(" ({})", ends_text(found, row));
    return fmt::format("; {}{}", reason_text(row, bytes), where);
  };
  const Bytes higher = diff.peak_b - diff.peak_a;
  if (higher == Bytes{}) {
    const auto largest = std::max_element(diff.rows.begin(), diff.rows.end(), [](const auto& x, const auto& y) {
      return std::abs(x.bytes.count()) < std::abs(y.bytes.count());
    });
    return fmt::format("the same peak of {}{}", to_text(diff.peak_a),
                       largest == diff.rows.end() ? ", and other ops" : reason(*largest, largest->bytes));
  }
  const bool up = higher > Bytes{};
  const DifferenceRow* row = nullptr;  // the first one whose cause is known, or else the first one
  for (const DifferenceRow& each : diff.rows)
    if (const bool counts = up ? each.at_peak > Bytes{} : each.at_peak < Bytes{};
        counts && (row == nullptr || (row->cause.empty() && !each.cause.empty())))
      row = &each;
  return fmt::format("{} peaks {} {} than {} ({} for {}){}", found.name_b, to_text(std::max(higher, -higher)),
                     up ? "higher" : "lower", found.name_a, to_text(diff.peak_b), to_text(diff.peak_a),
                     row == nullptr ? "" : reason(*row, row->at_peak));
}

void print_rows(const Compared& found, std::size_t show, bool at_peak) {
  std::size_t rows = 0;
  for (const DifferenceRow& row : found.diff.rows) {
    if ((row.at_peak != Bytes{}) != at_peak || rows++ >= show) continue;
    fmt::print("  {:>12}  {:<8} {:<16} {}, {}\n", signed_text(at_peak ? row.at_peak : row.bytes), word(row.change),
               word(row.kind), cause_text(row), counted(row.buffers, "buffer"));
    if (row.change == Difference::kLonger || row.change == Difference::kShorter)
      fmt::print("                {}\n", ends_text(found, row));
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

void print_json(const Compared& found) {
  const TraceDiff& diff = found.diff;
  Json rows = Json::array();
  for (const DifferenceRow& row : diff.rows)
    rows.push_back({{"change", word(row.change)},
                    {"cause", row.cause},
                    {"kind", word(row.kind)},
                    {"bytes", row.bytes.count()},
                    {"at_peak_bytes", row.at_peak.count()},
                    {"buffers", row.buffers}});
  const auto op = [](OpId id) { return id.valid() ? Json(id.index()) : Json(nullptr); };
  fmt::print("{}\n", json_text(Json{{"identical", found.same()},
                                    {"sentence", first_line(found)},
                                    {"paired_ops", diff.paired_ops},
                                    {"only_a_ops", diff.only_a},
                                    {"only_b_ops", diff.only_b},
                                    {"peak_a_bytes", diff.peak_a.count()},
                                    {"peak_b_bytes", diff.peak_b.count()},
                                    {"reserved_a_bytes", found.stated_a.reserved.count()},
                                    {"reserved_b_bytes", found.stated_b.reserved.count()},
                                    {"peak_of", diff.at_b ? "b" : "a"},
                                    {"peak_op", op(diff.instant.op)},
                                    {"other_bytes", diff.other.count()},
                                    {"first_a_op", op(diff.first_a)},
                                    {"first_b_op", op(diff.first_b)},
                                    {"rows", rows}}));
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

int run_diff(const DiffArguments& arguments) {
  if (names_results(arguments.a) || names_results(arguments.b)) {
    if (arguments.max_growth) refuse("--max-growth: expected it with traces, as results of sweeps have no growth");
    return diff_results(arguments.a, arguments.b, arguments.show, arguments.json);
  }
  const std::optional<double> growth =
      arguments.max_growth ? naming("--max-growth", [&] { return parse_share(*arguments.max_growth); }) : std::nullopt;
  if (arguments.max_growth && !growth)
    refuse("--max-growth: '{}' is no share; expected a number and %, as in 1%", *arguments.max_growth);
  const auto load = [](const std::string& path) {
    Trace trace = load_trace(path);
    naming(path, [&] { require_one_memory(trace, "`diff` compares one"); });
    return trace;
  };
  Trace a = load(arguments.a), b = load(arguments.b);
  TraceDiff diff = diff_traces(a, b);
  const StatedMemory stated_a = stated_memory(a), stated_b = stated_memory(b);
  const Compared found{printable(arguments.a), printable(arguments.b), std::move(a), std::move(b), stated_a, stated_b,
                       std::move(diff)};
  arguments.json ? print_json(found) : print_text(found, arguments.show);
  return (growth ? within(found, *growth) : found.same()) ? 0 : 1;
}

const RegisterCommand kDiff{
    {.name = "diff",
     .summary = "what differs between two traces, and which line of code causes it; or between two sets of results",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<DiffArguments>();
       app.add_option("a", arguments->a,
                      "a trace, in any form that import reads; or what sweep -o wrote, or some of its runs: "
                      "FILE:COLUMN=VALUE,... as in r.sqlite:policy=dtr or r.sqlite:run=1f00")
           .required();
       app.add_option("b", arguments->b, "the same, to compare with").required();
       app.add_option("--show", arguments->show, "rows of each table, and runs that are named").capture_default_str();
       app.add_option(
           "--max-growth", arguments->max_growth,
           "exit code 0 if the peak of B, and what its allocator reserved, is at most this share above that of "
           "A, as in 1%");
       app.add_flag("--json", arguments->json, "one JSON object");
       return std::function<int()>{[arguments] { return run_diff(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
