// Published schedules with their cost and peak (shared data remat_optimal): all replay to both.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <set>

#include "simulator/audit/schedule_audit.hpp"
#include "simulator/bounds/bound.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

using namespace tidepool;

namespace {

/// Calls visit(path, graph) for each file in the order of their names.
void for_each_graph(const std::function<void(const std::string&, const RecomputeGraph&)>& visit) {
  const auto folder = tests::shared_data("remat_optimal");
  if (!folder) return;
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator{*folder})
    if (entry.path().string().find(".json") != std::string::npos) paths.insert(entry.path().string());
  CHECK_FALSE(paths.empty());
  for (const std::string& path : paths) {
    const Input input = read_input(path);
    const auto form = recompute_graph_form(input.bytes().substr(0, kSniffBytes));
    INFO(path);
    REQUIRE(form);
    CHECK(find_importer(input, "auto").name == to_text(*form));
    visit(path, parse_recompute_graph(input, *form));
  }
}

double percent_over(Nanos time, Nanos base) {
  return (static_cast<double>(time.count()) / static_cast<double>(base.count()) - 1) * 100;
}

}  // namespace

TEST_CASE("published schedules of Checkmate and Moccasin replay to their stored cost and peak", "[published-optima]") {
  for_each_graph([](const std::string& path, const RecomputeGraph& graph) {
    for (const ReplayedSchedule& each : audit_schedules(graph)) {
      INFO(path << " " << each.budget << ": " << each.refused);
      CHECK(each.cost == each.stored_cost);
      CHECK(each.peak == each.stored_peak);
    }
  });
}

// Minutes: not run unless asked for by its tag.
TEST_CASE("tide-remat on published problems, against the best schedules known", "[.published-optima-table]") {
  fmt::print("{:<44} {:>6} {:>12}  {:>9} {:>9} {:>9} {:>9}  {:>8} {:>7}\n", "overhead in %", "budget", "status",
             "stored", "bound", "ours", "bound", "to best", "s");
  for_each_graph([](const std::string& path, const RecomputeGraph& graph) {
    const Trace trace = to_trace(graph);
    RunSpec spec;
    spec.pool = "ideal";
    spec.policy = "tide-remat";
    spec.assume = Assumptions::find(std::string{to_text(graph.form)});
    for (const GraphBudget& budget : graph.budgets) {
      spec.capacity = budget.capacity;
      const auto begin = std::chrono::steady_clock::now();
      const Result result = simulate(trace, spec);
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
      const BoundQuery query{trace, spec.machine, spec.capacity, false, true, spec.assume};
      const std::optional<Bound> bound = best_bound(query, BoundEffort::kAll);
      INFO(path << " " << budget.name);
      const Nanos base = result.baseline;
      const auto over = [&](const std::optional<Nanos>& time) {
        return time ? fmt::format("{:.3f}", percent_over(*time, base)) : std::string{"-"};
      };
      const bool feasible = !bound || bound->feasible;
      const Nanos least = bound && feasible ? std::max(bound->makespan, base) : base;
      std::optional<Nanos> stored, ours;
      if (budget.schedule) stored = budget.schedule->cost;
      if (result.outcome == Outcome::kOk) ours = result.totals.makespan;
      fmt::print("{:<44} {:>6} {:>12}  {:>9} {:>9} {:>9} {:>9}  {:>8} {:>7.1f}\n",
                 std::filesystem::path{path}.filename().string().substr(0, 44), budget.name, budget.status,
                 over(stored), over(budget.least), over(ours), feasible ? over(least) : "infeasible",
                 ours && stored ? fmt::format("{:+.3f}", percent_over(*ours, *stored)) : "-", wall.count());
      std::fflush(stdout);
      if (stored) CHECK(feasible);
      if (stored) CHECK(least <= *stored);
      if (ours) CHECK(least <= *ours);
    }
  });
}
