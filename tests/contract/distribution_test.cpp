// How close planners and bounds come to the least time where it is known. Not part of the suite:
// build/tidepool_tests "[distribution]"; TIDEPOOL_TINY_STEPS says how many steps (400), TIDEPOOL_TINY_OPS the most ops.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tiny_contract.hpp"

using namespace tidepool;
using tests::TinyClass;

namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

/// Of one planner, over steps whose optimum exceeds the time without a limit; failures are over all with a plan.
struct Ratios {
  std::vector<double> over;
  int failed = 0, feasible = 0;

  void add(const tests::TinyContract& contract, const Result& result) {
    ++feasible;
    if (result.outcome != Outcome::kOk) ++failed;
    if (result.outcome != Outcome::kOk || contract.optimum().makespan <= contract.baseline()) return;
    over.push_back(static_cast<double>(result.totals.makespan.count()) /
                   static_cast<double>(contract.optimum().makespan.count()));
  }
  void print(const std::string& name) {
    std::sort(over.begin(), over.end());
    double sum = 0;
    for (const double each : over) sum += each;
    const double count = static_cast<double>(std::max<std::size_t>(over.size(), 1));
    const auto exact = std::count_if(over.begin(), over.end(), [](double each) { return each <= 1; });
    fmt::print("{:<36} {:>6} {:>8.1f} % {:>8.3f} {:>8.2f} {:>8.2f} {:>7} of {}\n", name, over.size(),
               100 * static_cast<double>(exact) / count, sum / count, over.empty() ? 0 : over[over.size() * 99 / 100],
               over.empty() ? 0 : over.back(), failed, feasible);
  }
};

/// Of one bound, likewise: how much of what the optimum takes longer it proves. Where it has nothing to say, nothing.
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

}  // namespace

TEST_CASE("how close planners and bounds come to the optimum of tiny steps", "[.distribution]") {
  const std::uint64_t steps = number_from("TIDEPOOL_TINY_STEPS", 400), ops = number_from("TIDEPOOL_TINY_OPS", 6);
  const std::vector<std::pair<TinyClass, std::vector<std::string>>> planners{
      {{true, false}, {"tide(with=swap)"}}, {{false, true}, {"tide-remat"}}, {{true, true}, {"tide"}}};
  std::map<std::string, Ratios> ratios;
  std::map<std::string, Shares> shares;
  int solved = 0;
  for (std::uint64_t seed = 1; seed <= steps; ++seed) {
    const tests::TinyRecipe recipe = tests::tiny_recipe(seed, ops);
    for (const auto& [plans, policies] : planners) {
      tests::TinyContract contract{recipe, plans, 200'000};
      solved += contract.solved();
      if (!contract.solved() || !contract.optimum().feasible) continue;
      for (const std::string& policy : policies) ratios[policy].add(contract, contract.check_policy("ideal", policy));
      if (contract.optimum().makespan <= contract.baseline()) continue;
      const std::string with = " (" + with_text(plans.swap, plans.remat) + ")";
      for (const bool steady : {false, true}) {
        Nanos optimum = contract.optimum().makespan;
        if (steady) {
          const std::optional<SteadyOptimum> cycle = contract.check_steady(100'000);
          if (!cycle || !cycle->feasible || cycle->mean() <= contract.baseline()) continue;
          optimum = cycle->mean();
        }
        const std::vector<Bound> bounds = compute_bounds(contract.bound_query(steady), BoundEffort::kAll);
        std::map<std::string, Nanos> said;
        for (const BoundInfo* info : all_bounds())
          if ((info->swap || !plans.swap) && (info->remat || !plans.remat) && (info->steady || !steady))
            said[info->name] = Nanos{};
        for (const Bound& bound : bounds) said[bound.name] = bound.makespan;
        if (!bounds.empty()) said["best"] = bounds.back().makespan;
        for (const auto& [name, bound] : said)
          shares[(steady ? "steady " : "") + name + with].add(bound, optimum, contract.baseline());
      }
    }
  }
  fmt::print("{} steps of up to {} ops, {} of {} optima known\n", steps, ops, solved, 3 * steps);
  fmt::print("{:<36} {:>6} {:>10} {:>8} {:>8} {:>8} {:>7}\n", "planner", "steps", "exact", "mean", "p99", "max",
             "failed");
  for (auto& [name, each] : ratios) each.print(name);
  fmt::print("{:<36} {:>6} {:>10} {:>10} {:>10}\n", "bound", "steps", "of sum", "mean", "nothing");
  for (const auto& [name, each] : shares) each.print(name);
  CHECK(solved > 0);
}
