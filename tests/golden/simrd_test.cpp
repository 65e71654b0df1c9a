// The published simulator of the DTR authors, row by row: their heuristics on their logs at ten budgets each.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::simrd_test {

namespace {

std::map<std::string, std::string> row_of(const std::vector<std::string>& header, const std::string& line) {
  std::map<std::string, std::string> row;
  std::istringstream cells{line};
  std::string cell;
  for (const std::string& name : header) {
    std::getline(cells, cell, ',');
    row[name] = cell;
  }
  return row;
}

/// The rows that PyPy gave for the runtime that the paper used, without those of the random heuristic.
std::vector<std::map<std::string, std::string>> rows_of(const std::filesystem::path& table) {
  std::ifstream file{table};
  std::string line, name;
  std::getline(file, line);
  std::vector<std::string> header;
  for (std::istringstream cells{line}; std::getline(cells, name, ',');) header.push_back(name);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(file, line)) {
    auto row = row_of(header, line);
    if (row["impl"] == "pypy" && row["runtime"] == "RuntimeV2EagerOptimized" && row["heuristic"] != "RandomStorage")
      rows.push_back(std::move(row));
  }
  return rows;
}

std::string log_of(const std::filesystem::path& folder, const std::string& model) {
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    if (entry.path().filename().string().starts_with(model)) return entry.path().string();
  return {};
}

const std::map<std::string, std::string> kPolicyOf{
    {"DTR", "dtr"},   {"DTREqClass", "dtr-eq"}, {"DTRLocal", "dtr-local"},
    {"MSPS", "msps"}, {"LRU", "lru"},           {"LargestStorage", "largest"}};
const std::map<std::string, Outcome> kOutcomeOf{
    {"ok", Outcome::kOk}, {"oom", Outcome::kOutOfMemory}, {"thrash", Outcome::kTimeLimit}};

}  // namespace

TEST_CASE("every deterministic row of simrd's table is reproduced: status, overhead, evictions") {
  const auto table = tests::shared_data("dtr/simrd_results.csv");
  if (!table) return;
  const std::filesystem::path folder = std::filesystem::path{*table}.parent_path();
  const Assumptions assume = Assumptions::find("simrd");
  std::map<std::string, Trace> traces;
  int matched = 0, compared = 0;
  for (const auto& row : rows_of(*table)) {
    const std::string& model = row.at("model");
    if (!tests::kOptimised && model != "unet" && model != "resnet") continue;  // the two small logs
    if (!traces.contains(model)) traces.emplace(model, load_trace(log_of(folder, model)));
    const Trace& trace = traces.at(model);
    const Bytes peak = ideal_peak(trace, assume);
    CHECK(std::to_string(peak.count()) == row.at("baseline_memory"));
    const RunSpec spec{.pool = "ideal",
                       .policy = kPolicyOf.at(row.at("heuristic")),
                       .capacity = parse_capacity(row.at("ratio") + "x", peak),
                       .assume = assume,
                       .overhead_limit = 2.0};
    CHECK(std::to_string(spec.capacity.count()) == row.at("budget_bytes"));
    const Result result = simulate(trace, spec, true);
    const auto evictions =
        std::count_if(result.realised.actions.begin(), result.realised.actions.end(),
                      [](const Action& action) { return action.verb == Verb::kDrop || action.verb == Verb::kFree; });
    const std::string overhead = fmt::format(
        "{:.6f}", static_cast<double>(result.totals.makespan.count()) / static_cast<double>(result.baseline.count()));
    INFO(fmt::format("{} {} {}: {}", model, spec.policy.text, row.at("ratio"), result.message));
    const bool same = result.outcome == kOutcomeOf.at(row.at("status")) && overhead == row.at("overhead") &&
                      std::to_string(evictions) == row.at("n_evict");
    CHECK(to_text(result.outcome) == to_text(kOutcomeOf.at(row.at("status"))));
    CHECK(overhead == row.at("overhead"));
    CHECK(std::to_string(result.totals.recompute.count()) == row.at("remat_compute_ns"));
    CHECK(std::to_string(evictions) == row.at("n_evict"));
    matched += same;
    ++compared;
  }
  CHECK(compared > 0);
  CHECK(matched == compared);
  fmt::print("simrd: {} of {} rows matched\n", matched, compared);
}

}  // namespace tidepool::simrd_test
