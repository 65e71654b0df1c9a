#include "simulator/studies/sweep/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/options.hpp"
#include "simulator/run_spec.hpp"
#include "traces/base/error.hpp"
#include "traces/base/nearest.hpp"

namespace tidepool {
namespace {

std::vector<std::string> choices() {
  std::vector<std::string> names{"run", "trace", "capacity"};
  for (const Column& column : result_columns())
    if (column.role == ColumnRole::kIdentity && column.name != "capacity_bytes") names.emplace_back(column.name);
  return names;
}

bool has_capacity(const Row& row, const std::string& wanted) {
  const auto* peak = std::get_if<std::int64_t>(&at(row, "ideal_peak_bytes"));
  const Bytes capacity = parse_capacity(wanted, Bytes{peak ? *peak : 0});
  const auto* bytes = std::get_if<std::int64_t>(&at(row, "capacity_bytes"));
  return capacity == (bytes ? Bytes{*bytes} : kNoLimit);
}

/// The identity columns by which runs are paired.
std::vector<std::size_t> pairing(const ResultSelection& a, const ResultSelection& b) {
  const auto fixed = [&](std::string_view column) { return a.fixes(column) || b.fixes(column); };
  const bool other_options = fixed("policy") || fixed("pool") || fixed("options");
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < result_columns().size(); ++i) {
    const auto& [name, type, role] = result_columns()[i];
    if (role != ColumnRole::kIdentity || name == "version" || fixed(name)) continue;
    if (name == "options" && other_options) continue;
    if (name == "machine_hash" && fixed("machine")) continue;
    if (name == "trace_hash" && fixed("trace")) continue;
    if (name == "capacity_bytes" && fixed("capacity")) continue;
    columns.push_back(i);
  }
  return columns;
}

std::string pair_key(const Row& row, std::span<const std::size_t> columns) {
  std::string text;
  for (const std::size_t column : columns) text += value_text(row.at(column)) + "\n";
  return content_key(text);
}

/// The keys of a selection's runs, by their values in the columns that pair runs.
std::unordered_map<std::string, std::string> selected(const ResultSelection& selection, const Database& database,
                                                      std::span<const std::size_t> columns) {
  std::unordered_map<std::string, std::string> runs;
  std::optional<InputError> ambiguous;
  database.each([&](const KeyedRow& run) {
    if (!selection.has(run)) return;
    const auto [known, is_new] = runs.try_emplace(pair_key(run.row, columns), run.key);
    if (!is_new && !ambiguous)
      ambiguous = InputError{
          fmt::format("{}: runs {} and {} would both be compared with the same run; expected a choice between them",
                      selection.text, known->second, run.key)};
  });
  if (ambiguous) throw *ambiguous;
  if (runs.empty()) throw InputError{fmt::format("{}: selects no run", selection.text)};
  return runs;
}

std::optional<double> number(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return {};
}

std::optional<double> relative_change(const Value& a, const Value& b) {
  const auto from = number(a), to = number(b);
  if (!from || !to || *from == 0) return {};
  return *to / *from - 1;
}

/// The values that the runs of these keys have in a column.
std::set<std::string> values_of(const std::vector<std::string>& keys, const Database& database, std::size_t column) {
  std::set<std::string> values;
  for (const std::string& key : keys) values.insert(value_text(database.get(key).at(column)));
  return values;
}

/// Fills ResultComparison::apart of runs without pairs.
void tell_apart(ResultComparison& result, const Database& a, const Database& b, std::span<const std::size_t> columns) {
  for (const std::size_t column : columns) {
    const std::set<std::string> in_a = values_of(result.only_a, a, column), in_b = values_of(result.only_b, b, column);
    std::vector<std::string> both;
    std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(both));
    if (!both.empty()) continue;
    result.apart = {std::string{result_columns()[column].name}, *in_a.begin(), *in_b.begin()};
    return;
  }
}

/// The differences of all pairs so far.
class Tally {
 public:
  void add(const KeyedRow& a, const KeyedRow& b) {
    const std::vector<std::string_view> moved = moved_results(a.row, b.row);
    if (moved.empty()) {
      ++result_.identical;
      return;
    }
    for (const std::string_view name : moved) {
      MovedColumn& column = columns_[index(name)];
      column.name = name;
      ++column.runs;
      if (const auto change = relative_change(at(a.row, name), at(b.row, name))) column.relative.push_back(*change);
    }
    const Value &from = at(a.row, "outcome"), &to = at(b.row, "outcome");
    double change = std::abs(relative_change(at(a.row, "makespan_ns"), at(b.row, "makespan_ns")).value_or(0));
    if (from != to) {
      ++result_.outcomes[{value_text(from), value_text(to)}];
      change = std::numeric_limits<double>::infinity();
    }
    result_.moved.push_back({a.key, b.key, change});
  }

  ResultComparison take() {
    std::sort(result_.moved.begin(), result_.moved.end(), [](const MovedRun& a, const MovedRun& b) {
      return std::tie(b.change, a.key_a) < std::tie(a.change, b.key_a);
    });
    for (auto& [position, column] : columns_) {
      std::sort(column.relative.begin(), column.relative.end());
      result_.columns.push_back(std::move(column));
    }
    return std::move(result_);
  }

  ResultComparison& result() { return result_; }

 private:
  static std::size_t index(std::string_view name) {
    const auto columns = result_columns();
    return static_cast<std::size_t>(
        std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; }) -
        columns.begin());
  }

  ResultComparison result_;
  std::map<std::size_t, MovedColumn> columns_;
};

}  // namespace

bool ResultSelection::fixes(std::string_view column) const {
  return std::any_of(wanted.begin(), wanted.end(), [&](const auto& choice) { return choice.first == column; });
}

bool ResultSelection::has(const KeyedRow& run) const {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& choice) {
    const auto& [column, value] = choice;
    if (column == "run") return run.key.starts_with(value);
    if (column == "capacity") return has_capacity(run.row, value);
    return value_text(at(run.row, column)) == value;
  });
}

ResultSelection parse_selection(const std::string& text) {
  ResultSelection selection{.text = text, .path = text, .wanted = {}};
  // A path may contain colons: the choices begin after the last colon before the first "=".
  const std::size_t colon = text.rfind(':', text.find('='));
  if (colon == std::string::npos || (text.find('=') == std::string::npos && text.find('/', colon) != text.npos))
    return selection;
  selection.path = text.substr(0, colon);
  for (const std::string& choice : split_list(std::string_view{text}.substr(colon + 1))) {
    const std::size_t equals = choice.find('=');
    if (equals == std::string::npos)
      throw InputError{
          fmt::format("{}: '{}' is no choice; expected COLUMN=VALUE, as in policy=dtr", selection.text, choice)};
    const std::string column = choice.substr(0, equals), value = choice.substr(equals + 1);
    if (const std::vector<std::string> known = choices(); std::find(known.begin(), known.end(), column) == known.end())
      throw InputError{unknown_name("column", column, known)}.at(text);
    try {
      if (column == "capacity") static_cast<void>(parse_capacity(value, Bytes{}));
    } catch (const InputError& error) {
      throw error.at(text);
    }
    selection.wanted.emplace_back(column, value);
  }
  return selection;
}

ResultComparison compare(const ResultSelection& a, const Database& database_a, const ResultSelection& b,
                         const Database& database_b) {
  const auto in = [](const Database& database, const std::string& key) { return KeyedRow{key, database.get(key)}; };
  const std::vector<std::size_t> columns = pairing(a, b);
  auto runs_a = selected(a, database_a, columns), runs_b = selected(b, database_b, columns);
  Tally tally;
  if ((a.fixes("run") || b.fixes("run")) && runs_a.size() == 1 && runs_b.size() == 1) {
    tally.add(in(database_a, runs_a.begin()->second), in(database_b, runs_b.begin()->second));
    return tally.take();
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [pair, key] : runs_a) {
    const auto other = runs_b.find(pair);
    if (other == runs_b.end()) {
      tally.result().only_a.push_back(key);
      continue;
    }
    pairs.emplace_back(key, other->second);
    runs_b.erase(other);
  }
  for (const auto& [pair, key] : runs_b) tally.result().only_b.push_back(key);
  std::sort(pairs.begin(), pairs.end());  // by key, as in the files
  std::sort(tally.result().only_a.begin(), tally.result().only_a.end());
  std::sort(tally.result().only_b.begin(), tally.result().only_b.end());
  if (pairs.empty()) tell_apart(tally.result(), database_a, database_b, columns);
  for (const auto& [key_a, key_b] : pairs) tally.add(in(database_a, key_a), in(database_b, key_b));
  return tally.take();
}

}  // namespace tidepool
