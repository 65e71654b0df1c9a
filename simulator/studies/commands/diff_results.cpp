// Differences between two sets of results, in text and JSON.
#include "simulator/studies/commands/diff_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "simulator/studies/sweep/compare.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/result_json.hpp"
#include "traces/base/counted.hpp"
#include "traces/base/json_text.hpp"
#include "traces/base/numbers.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace

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

}  // namespace tidepool
