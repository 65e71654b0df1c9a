// The decisions that runs report, for every registered policy.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "simulator/engine/decisions/decision.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "tests/quick_spec.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::decisions_test {

using tidepool::tests::kOptimised;
using tidepool::tests::random_trace;

namespace {

const Machine kMachine = tests::uneven();

/// An eviction: the iteration, the op before which it is done, and the version.
using Eviction = std::tuple<int, std::uint32_t, std::uint32_t>;  // iteration, op or ~0, version

std::uint32_t number(OpId op) { return op.valid() ? op.value() : ~std::uint32_t{0}; }

/// How often each eviction occurs.
struct Evictions {
  std::map<Eviction, int> drops, copies;
};

Evictions told_evictions(const std::vector<Decision>& told) {
  Evictions all;
  for (const Decision& decision : told)
    for (const Action& action : decision.chosen) {
      const Eviction eviction{decision.iteration, number(decision.before), action.subject};
      if (action.verb == Verb::kDrop) ++all.drops[eviction];
      if (action.verb == Verb::kSwapOut) ++all.copies[eviction];
    }
  return all;
}

Evictions done_evictions(const Plan& plan) {
  Evictions all;
  int iteration = 0;
  for (const Action& action : plan.actions) {
    if (action.verb == Verb::kNext) ++iteration;
    const Eviction eviction{iteration, number(action.before), action.subject};
    if (action.verb == Verb::kDrop) ++all.drops[eviction];
    if (action.verb == Verb::kSwapOut) ++all.copies[eviction];
  }
  return all;
}

/// The iteration and the version of each eviction, without its op.
std::set<std::pair<int, std::uint32_t>> versions_of(const std::map<Eviction, int>& evictions) {
  std::set<std::pair<int, std::uint32_t>> versions;
  for (const auto& [eviction, count] : evictions) versions.emplace(std::get<0>(eviction), std::get<2>(eviction));
  return versions;
}

std::vector<std::uint32_t> subjects_of(const Decision& decision) {
  std::vector<std::uint32_t> subjects;
  for (const auto* actions : {&decision.chosen, &decision.in_vain})
    for (const Action& action : *actions) subjects.push_back(action.subject);
  std::sort(subjects.begin(), subjects.end());
  return subjects;
}

/// Checks that the policy takes the candidate that it ranks first, and that the score of this candidate is exact.
void check_ranking(const Decision& decision) {
  const Ranking& ranking = decision.ranking;
  REQUIRE(ranking.candidates > 0);
  REQUIRE(!ranking.first.empty());
  CHECK(ranking.first.size() <= std::min(ranking.candidates, Ranking::kMost));
  CHECK_FALSE(ranking.first.front().at_least);
  std::vector<std::uint32_t> first;
  for (const VersionId v : ranking.first.front().versions) first.push_back(v.value());
  std::sort(first.begin(), first.end());
  CHECK(subjects_of(decision) == first);
}

/// Checks that every drop and every copy to the host is reported where it is done, except drops of a version whose copy
/// is reported in the same iteration. Every reported action must be done, except a copy of a version that is copied
/// elsewhere in the iteration.
void check_told(const std::vector<Decision>& told, const Plan& plan) {
  const Evictions said = told_evictions(told), done = done_evictions(plan);
  const auto copied_said = versions_of(said.copies), copied_done = versions_of(done.copies);
  for (const auto& [eviction, count] : done.copies) CHECK(said.copies.contains(eviction));
  for (const auto& [eviction, count] : said.copies)
    CHECK((done.copies.contains(eviction) || copied_done.contains({std::get<0>(eviction), std::get<2>(eviction)})));
  for (const auto& [eviction, count] : said.drops) {
    REQUIRE(done.drops.contains(eviction));
    CHECK(count <= done.drops.at(eviction));
  }
  for (const auto& [eviction, count] : done.drops) {
    const auto of_said = said.drops.find(eviction);
    CHECK(((of_said != said.drops.end() && of_said->second == count) ||
           copied_said.contains({std::get<0>(eviction), std::get<2>(eviction)})));
  }
}

}  // namespace

TEST_CASE("every policy explains its decisions, and decides the same without --explain") {
  std::set<std::string> asked, silent;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 8 : 2); ++seed) {
    const Trace trace = random_trace(seed, 60 + static_cast<int>(seed) * 20);
    for (const char* pool : {"best-fit", "ideal"})
      for (const PolicyInfo* policy : all_policies())
        for (const double fraction : {0.35, 0.5, 0.7, 0.9}) {
          INFO(fmt::format("seed {} pool {} policy {} capacity {}x", seed, pool, policy->name, fraction));
          RunSpec spec{.pool = pool, .policy = tests::quick_spec(*policy), .machine = kMachine, .iterations = 2};
          spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
          std::vector<Decision> told;
          const Result explained =
              simulate_explained(trace, spec, true, [&](const Decision& decision) { told.push_back(decision); });
          const Result result = simulate(trace, spec, true);
          CHECK(explained.realised == result.realised);
          CHECK(explained.totals == result.totals);
          CHECK(explained.cost_evaluations == result.cost_evaluations);
          REQUIRE(result.outcome != Outcome::kError);
          check_told(told, result.realised);
          for (const Decision& decision : told) {
            (decision.occasion == Occasion::kRequest ? asked : silent).insert(policy->name);
            if (decision.occasion == Occasion::kRequest) check_ranking(decision);
          }
        }
  }
  for (const char* online : {"coop", "dte", "dtr", "dtr-eq", "dtr-local", "largest", "lru", "lru-swap", "msps",
                             "next-use", "random", "swapadvisor"})
    CHECK(asked.contains(online));
  for (const char* planned : {"chen", "revolve"}) CHECK(silent.contains(planned));
}

}  // namespace tidepool::decisions_test
