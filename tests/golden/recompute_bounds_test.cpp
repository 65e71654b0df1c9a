// Lower bounds on recomputation that were computed elsewhere, for operator logs of the DTR authors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::recompute_bounds_test {

namespace {

std::vector<std::map<std::string, std::string>> rows_of(const std::string& path) {
  std::ifstream file{path};
  std::string line, cell;
  std::getline(file, line);
  std::vector<std::string> header;
  for (std::istringstream cells{line}; std::getline(cells, cell, ',');) header.push_back(cell);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(file, line)) {
    std::istringstream cells{line};
    for (rows.emplace_back(); const std::string& name : header) {
      cell.clear();
      std::getline(cells, cell, ',');
      rows.back()[name] = cell;
    }
  }
  return rows;
}

std::string log_of(const std::string& folder, const std::string& model) {
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    if (entry.path().filename().string().starts_with(model)) return entry.path().string();
  return {};
}

/// The bound of gap-lp over `work`, the sum of all ops' times in ns; 0 if it has no answer.
double gap_program_of(const BoundQuery& query, std::int64_t work) {
  for (const BoundInfo* info : all_bounds())
    if (info->name == "gap-lp")
      if (const std::optional<Bound> bound = info->compute(query))
        return static_cast<double>(bound->makespan.count() - 1) / static_cast<double>(work);
  return 0;
}

}  // namespace

TEST_CASE("bounds on recomputation are at least the known ones, and no feasible case is called infeasible") {
  const auto table = tests::shared_data("remat/lower_bounds.csv"), folder = tests::shared_data("dtr");
  if (!table || !folder) return;
  const Assumptions assume = Assumptions::find("simrd");
  const Machine machine;
  std::map<std::string, Trace> traces;
  int reached = 0, compared = 0;
  for (const auto& row : rows_of(*table)) {
    const std::string model = row.at("model");
    if (!traces.contains(model)) traces.emplace(model, load_trace(log_of(*folder, model)));
    const Trace& trace = traces.at(model);
    std::int64_t work = 0;
    for (const Op& op : trace.ops()) work += op.duration.count();
    const BoundQuery query{.trace = trace,
                           .machine = machine,
                           .capacity = parse_capacity(row.at("budget_ratio") + "x", ideal_peak(trace, assume)),
                           .remat = true,
                           .assume = assume};
    const std::optional<Bound> bound = best_bound(query);
    INFO(fmt::format("{} at {}", model, row.at("budget_ratio")));
    REQUIRE(bound);
    CHECK(bound->feasible == (row.at("feasible") == "1"));
    ++compared;
    if (!bound->feasible) {
      ++reached;
      continue;
    }
    const double known = std::max({std::stod(row.at("lb_best")), std::stod(row.at("lb_gap_lp")),
                                   row.at("lb_mincut_cascade").empty() ? 1.0 : std::stod(row.at("lb_mincut_cascade"))});
    // The clock starts at 1 ns, which the makespan includes. The table is rounded to 1e-6, so half of that is allowed.
    const double ours = static_cast<double>(bound->makespan.count() - 1) / static_cast<double>(work);
    CHECK(ours >= known - 0.5e-6);
    if (const double program = std::stod(row.at("lb_gap_lp")); program > 1 && model != "treelstm")
      CHECK(std::abs(gap_program_of(query, work) - program) < 2e-6);
    reached += ours >= known - 0.5e-6;
  }
  CHECK(compared > 30);
  fmt::print("bounds on recomputation: {} of {} rows reached\n", reached, compared);
}

}  // namespace tidepool::recompute_bounds_test
