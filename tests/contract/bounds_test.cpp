// No run of any registered policy, with or without addresses, is faster than a bound that holds for it. No run ends
// well if a bound says that no plan exists.
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "tests/paths.hpp"
#include "tests/quick_spec.hpp"
#include "tests/random_trace.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::bounds_test {

using tidepool::tests::kOptimised;
using tidepool::tests::random_trace;

namespace {

const Machine kMachine = tests::uneven();

/// All bounds for one trace, one set of assumptions and one number of iterations, by allowed actions and capacity.
class Judge {
 public:
  explicit Judge(const Trace& trace) : trace_{trace} {}

  /// Runs the step and compares its time with every bound.
  /// @return  number of bounds above the critical path; 0 if the run does not end well
  int check(const RunSpec& spec, BoundEffort effort = BoundEffort::kAll) {
    const Result result = simulate(trace_, spec);
    if (result.outcome != Outcome::kOk) return 0;
    const BoundQuery query = query_of(trace_, spec);
    const auto [found, is_new] =
        known_.try_emplace({with_text(query.swap, query.remat, query.order), spec.capacity.count()});
    if (is_new) found->second = compute_bounds(query, effort);
    int strong = 0;
    for (const Bound& bound : found->second) {
      INFO(fmt::format("{} for {}: {}", bound.name, bound.with, bound.proof));
      REQUIRE(bound.feasible);
      REQUIRE(bound.makespan <= result.totals.makespan);
      REQUIRE((bound.limited_by == Resource::kCompute) == (bound.name == "critical-path"));
      strong += bound.makespan > found->second.front().makespan;
    }
    return strong;
  }

 private:
  const Trace& trace_;
  std::map<std::pair<std::string, std::int64_t>, std::vector<Bound>> known_;
};

Bytes part_of(Bytes peak, double fraction) {
  return Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(peak.count()))};
}

}  // namespace

TEST_CASE("no run on random traces is better than its bounds") {
  int strong = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 12 : 2); ++seed) {
    const Trace trace = random_trace(seed, 30 + static_cast<int>(seed) * 12);
    for (const int iterations : {1, 3}) {
      Judge judge{trace};
      for (const PolicyInfo* policy : all_policies())
        for (const char* pool : {"ideal", "best-fit"})
          for (const double fraction : {0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0, 1.3}) {
            INFO(fmt::format("seed {} policy {} pool {} capacity {}x iterations {}", seed, policy->name, pool, fraction,
                             iterations));
            RunSpec spec{
                .pool = pool, .policy = tests::quick_spec(*policy), .machine = kMachine, .iterations = iterations};
            spec.capacity = part_of(trace.ideal_peak(), fraction);
            strong += judge.check(spec);
          }
    }
  }
  CHECK(strong > 100);  // enough of the bounds are above the critical path
}

TEST_CASE("no run under the assumptions of the DTR simulator is better than its bounds") {
  const Assumptions assume = Assumptions::find("simrd");
  int strong = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 12 : 3); ++seed) {
    const Trace trace = random_trace(seed, 30 + static_cast<int>(seed) * 10);
    Judge judge{trace};
    for (const PolicyInfo* policy : all_policies()) {
      if (policy->kind == PolicyKind::kSwap || policy->kind == PolicyKind::kHybrid) continue;  // no host here
      for (const double fraction : {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
        INFO(fmt::format("seed {} policy {} capacity {}x", seed, policy->name, fraction));
        RunSpec spec{.pool = "ideal", .policy = tests::quick_spec(*policy), .machine = kMachine, .assume = assume};
        spec.capacity = part_of(ideal_peak(trace, assume), fraction);
        strong += judge.check(spec);
      }
    }
  }
  CHECK(strong > 100);
}

TEST_CASE("no run on the bundled samples is better than its quick bounds") {
  int strong = 0;
  for (const char* name : {"bilstm", "gpt2", "resnet50", "unet", "vgg16"}) {
    const Trace trace = load_trace(fmt::format("{}/traces/samples/{}.tide", paths::source_folder(), name));
    Judge judge{trace};
    for (const PolicyInfo* policy : all_policies())
      for (const double fraction : {0.4, 0.5, 0.6, 0.7, 0.8, 0.9}) {
        if (!kOptimised && fraction != 0.7) continue;
        INFO(fmt::format("{} policy {} capacity {}x", name, policy->name, fraction));
        RunSpec spec{.pool = "ideal", .policy = tests::quick_spec(*policy), .machine = find_machine("v100-pcie3")};
        spec.capacity = part_of(trace.ideal_peak(), fraction);
        spec.overhead_limit = 2.0;
        strong += judge.check(spec, BoundEffort::kQuick);
      }
  }
  CHECK(strong > 20);
}

TEST_CASE("more memory never raises a bound") {
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 20 : 4); ++seed) {
    const Trace trace = random_trace(seed, 200);
    for (const auto& [swap, remat] : {std::pair{false, true}, std::pair{true, false}, std::pair{true, true}}) {
      std::optional<Bound> before;
      for (int percent = 100; percent >= 20; percent -= 4) {
        INFO(fmt::format("seed {} capacity {} %", seed, percent));
        const std::optional<Bound> bound = best_bound({.trace = trace,
                                                       .machine = kMachine,
                                                       .capacity = trace.ideal_peak() * percent / 100,
                                                       .swap = swap,
                                                       .remat = remat});
        REQUIRE(bound);
        if (before) {
          CHECK((!bound->feasible || before->feasible));
          if (bound->feasible) CHECK(bound->makespan >= before->makespan);
        }
        before = bound;
      }
    }
  }
}

}  // namespace tidepool::bounds_test
