#include "simulator/studies/commands/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/result_json.hpp"
#include "traces/base/json_text.hpp"

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
             answer.found ? share(capacity) : "-", answer.found && ok ? percent(at(row, "overhead_ratio"), 1) : "-",
             answer.found ? percent(at(row, "gap"), 0) : "-", answer.runs, answer.points);
  if (!answer.found)
    fmt::print("  not even with {}: {}{}", share(capacity), text_at(row, "outcome"),
               ok ? ", overhead " + percent(at(row, "overhead_ratio"), 1) : "");
  if (!answer.fails_above.empty()) {
    fmt::print("  but not with");
    for (const Bytes above : answer.fails_above) fmt::print(" {}", share(above));
  }
  fmt::print("\n");
}

}  // namespace

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

}  // namespace tidepool
