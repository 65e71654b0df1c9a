// Published schedules with their cost and peak (shared data remat_optimal): a replay of each gives both.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <set>

#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/audit/audit.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::published_schedules_test {

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

/// The number of rows of a kind, and of those that reached their goal.
struct Count {
  int rows = 0, reached = 0;
  bool note(bool yes) {
    ++rows;
    reached += yes;
    return yes;
  }
};

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

// Takes minutes, so it runs only if its tag is given. A row has up to two stored bounds: one on plans of the paper's
// model, which run an op at most once a stage (Checkmate) or twice in all (Moccasin), and one on all plans that keep
// the order of first runs. Tidepool's bound is on the latter plans.
TEST_CASE("tide-remat on published problems, against the best schedules known", "[.published-optima-table]") {
  fmt::print("{:<44} {:>6} {:>12}  {:>8} {:>8} {:>8} {:>8} {:>8}  {:>8} {:>7} {:>7}  {}\n", "overhead in %", "budget",
             "status", "stored", "few runs", "any runs", "ours", "bound", "to best", "gap", "CPU s", "reached");
  Count closed, open;
  for_each_graph([&](const std::string& path, const RecomputeGraph& graph) {
    const Trace trace = to_trace(graph);
    RunSpec spec;
    spec.pool = "ideal";
    spec.policy = "tide-remat";
    spec.assume = Assumptions::find(std::string{to_text(graph.form)});
    for (const GraphBudget& budget : graph.budgets) {
      spec.capacity = budget.capacity;
      const std::clock_t begin = std::clock();
      const Result result = simulate(trace, spec);
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
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
      std::string reached = "-";
      if (stored && budget.status == "open") {
        const bool plan = ours && *ours < *stored, proof = budget.least && least > *budget.least;
        reached =
            open.note(plan || proof) ? fmt::format("better{}{}", plan ? " plan" : "", proof ? " bound" : "") : "no";
      } else if (stored) {
        reached = closed.note(ours && percent_over(*ours, *stored) <= 0.5 && seconds < 10) ? "yes" : "no";
      }
      const auto between = [](const std::optional<Nanos>& time, const std::optional<Nanos>& from) {
        return time && from ? fmt::format("{:+.3f}", percent_over(*time, *from)) : std::string{"-"};
      };
      fmt::print("{:<44} {:>6} {:>12}  {:>8} {:>8} {:>8} {:>8} {:>8}  {:>8} {:>7} {:>7.1f}  {}\n",
                 std::filesystem::path{path}.filename().string().substr(0, 44), budget.name, budget.status,
                 over(stored), over(budget.least), over(budget.least_any), over(ours),
                 feasible ? over(least) : "infeasible", between(ours, stored),
                 feasible ? between(ours, std::max(least, budget.least_any.value_or(least))) : "-", seconds, reached);
      std::fflush(stdout);
      if (stored) CHECK(feasible);
      if (stored) CHECK(least <= *stored);
      if (ours) CHECK(least <= *ours);
    }
  });
  fmt::print(
      "closed: {} of {} within 0.5 % of the stored schedule in less than 10 s; open: {} of {} with a better plan "
      "or a better bound\n",
      closed.reached, closed.rows, open.reached, open.rows);
}

}  // namespace tidepool::published_schedules_test
