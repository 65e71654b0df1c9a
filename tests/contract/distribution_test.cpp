// How far planners and bounds are from the least time, where it is known. Not part of the suite; it is started with
// build/tidepool_tests "[distribution]". TIDEPOOL_TINY_STEPS is the number of steps (default 400), TIDEPOOL_TINY_OPS
// the largest number of ops in a step (default 6).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/boundary.hpp"
#include "simulator/run.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "tests/catch.hpp"
#include "tests/tiny_contract.hpp"

namespace tidepool::distribution_test {

using tests::TinyClass;

namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

/// Results of one planner. `over` has makespan over optimum of the runs that end well on steps whose optimum exceeds
/// the time without a limit; the other members cover all runs.
struct Ratios {
  std::vector<double> over;
  int failed = 0, feasible = 0;
  double longest = 0;  ///< CPU time of one run with its checks, in seconds

  /// @param run  runs the planner and returns the result
  template <class Run>
  void add(Nanos optimum, Nanos baseline, Run run) {
    const std::clock_t begin = std::clock();
    const Result result = run();
    longest = std::max(longest, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    ++feasible;
    if (result.outcome != Outcome::kOk) ++failed;
    if (result.outcome != Outcome::kOk || optimum <= baseline) return;
    over.push_back(static_cast<double>(result.totals.makespan.count()) / static_cast<double>(optimum.count()));
  }
  double count() const { return static_cast<double>(std::max<std::size_t>(over.size(), 1)); }
  /// The share of ratios that are 1 or less: the run is as fast as the optimum.
  double exact() const {
    return static_cast<double>(std::count_if(over.begin(), over.end(), [](double each) { return each <= 1; })) /
           count();
  }
  double mean() const { return std::accumulate(over.begin(), over.end(), 0.0) / count(); }
  double most() const { return over.empty() ? 0 : *std::max_element(over.begin(), over.end()); }
  void print(const std::string& name) {
    std::sort(over.begin(), over.end());
    fmt::print("{:<36} {:>6} {:>8.1f} % {:>8.3f} {:>8.2f} {:>8.2f} {:>5} of {:<5} {:>8.2f} s\n", name, over.size(),
               100 * exact(), mean(), over.empty() ? 0 : over[over.size() * 99 / 100], most(), failed, feasible,
               longest);
  }
};

/// Results of one bound over the steps whose optimum exceeds the time without a limit: the share of the optimum's
/// overhead that the bound proves. A bound without an answer proves 0.
struct Shares {
  double proved = 0, lost = 0, shares = 0;
  int steps = 0, nothing = 0;

  void add(Nanos bound, Nanos optimum, Nanos baseline) {
    const double proves = static_cast<double>(std::max(Nanos{}, bound - baseline).count());
    const double loses = static_cast<double>((optimum - baseline).count());
    proved += proves, lost += loses, shares += proves / loses;
    ++steps, nothing += proves == 0;
  }
  void print(const std::string& name) const {
    fmt::print("{:<36} {:>6} {:>8.1f} % {:>8.1f} % {:>8.1f} %\n", name, steps, 100 * proved / lost,
               100 * shares / steps, 100.0 * nothing / steps);
  }
};

/// The policy's run of the step in its steady state.
Result run_steadily(const Trace& trace, const tests::TinyRecipe& recipe, const std::string& policy) {
  return simulate(trace, {.pool = "ideal",
                          .policy = policy,
                          .capacity = recipe.capacity(),
                          .machine = recipe.machine,
                          .steady = true,
                          .iterations = kUsualIterations});
}

}  // namespace

TEST_CASE("how close planners and bounds come to the optimum of tiny steps", "[.distribution]") {
  const std::uint64_t steps = number_from("TIDEPOOL_TINY_STEPS", 400), ops = number_from("TIDEPOOL_TINY_OPS", 6);
  const std::vector<std::pair<TinyClass, std::vector<std::string>>> planners{
      {{true, false}, {"tide(with=swap,least=1B)"}},
      {{false, true}, {"tide-remat"}},
      {{true, true}, {"tide(least=1B)"}}};
  std::map<std::string, Ratios> ratios;
  std::map<std::string, Shares> shares;
  int solved = 0;
  for (std::uint64_t seed = 1; seed <= steps; ++seed) {
    const tests::TinyRecipe recipe = tests::tiny_recipe(seed, ops);
    for (const auto& [plans, policies] : planners) {
      tests::TinyContract contract{recipe, plans, 200'000};
      solved += contract.solved();
      if (!contract.solved() || !contract.optimum().feasible) continue;
      const Nanos baseline = contract.baseline();
      for (const std::string& policy : policies)
        ratios[policy].add(contract.optimum().makespan, baseline,
                           [&] { return contract.check_policy("ideal", policy); });
      if (contract.optimum().makespan <= baseline) continue;
      const std::string with = " (" + with_text(plans.swap, plans.remat) + ")";
      for (const bool steady : {false, true}) {
        Nanos optimum = contract.optimum().makespan;
        if (steady) {
          const std::optional<SteadyOptimum> cycle = contract.check_steady(100'000);
          if (!cycle || !cycle->feasible || cycle->mean() <= baseline) continue;
          optimum = cycle->mean();
          const Nanos rounded{rounded_mean(cycle->cycle.count(), cycle->iterations)};
          for (const std::string& policy : policies)
            ratios["steady " + policy].add(rounded, baseline,
                                           [&] { return run_steadily(contract.trace(), recipe, policy); });
        }
        const std::vector<Bound> bounds = compute_bounds(contract.bound_query(steady), BoundEffort::kAll);
        std::map<std::string, Nanos> said;
        for (const BoundInfo* info : all_bounds())
          if ((info->swap || !plans.swap) && (info->remat || !plans.remat) && (info->steady || !steady))
            said[info->name] = Nanos{};
        for (const Bound& bound : bounds) said[bound.name] = bound.makespan;
        if (!bounds.empty()) said["best"] = bounds.back().makespan;
        for (const auto& [name, bound] : said)
          shares[(steady ? "steady " : "") + name + with].add(bound, optimum, baseline);
      }
    }
  }
  fmt::print("{} steps of up to {} ops, {} of {} optima known\n", steps, ops, solved, 3 * steps);
  fmt::print("{:<36} {:>6} {:>10} {:>8} {:>8} {:>8} {:>14} {:>10}\n", "planner", "steps", "exact", "mean", "p99", "max",
             "failed", "longest");
  for (auto& [name, each] : ratios) each.print(name);
  fmt::print("{:<36} {:>6} {:>10} {:>10} {:>10}\n", "bound", "steps", "of sum", "mean", "nothing");
  for (const auto& [name, each] : shares) each.print(name);
  CHECK(solved > 0);
  for (const auto& [plans, policies] : planners) {
    const Ratios& wanted = ratios[policies.front()];
    INFO(policies.front());
    CHECK(wanted.failed == 0);
    CHECK(wanted.exact() >= 0.9);
    CHECK(wanted.mean() <= 1.01);
    CHECK(wanted.most() <= 1.2);
  }
}

}  // namespace tidepool::distribution_test
