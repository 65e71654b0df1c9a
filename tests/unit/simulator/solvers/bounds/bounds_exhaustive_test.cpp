#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/random_trace.hpp"
#include "tests/unit/best_schedule.hpp"

namespace tidepool::bounds_exhaustive_test {

using tests::BestSchedule;
using tests::Random;

namespace {

/// A step of a few ops. Each reads live buffers, and makes one or two new ones, or updates or overwrites one. At most
/// one version is an output of the step.
Trace tiny_trace(std::uint64_t seed) {
  Random random{seed};
  TraceBuilder build;
  std::vector<BufferId> live;
  const auto size = [&] { return Bytes{static_cast<std::int64_t>(1 + random.below(7))}; };
  if (random.chance(50)) live.push_back(build.existing({.size = size()}));
  const std::size_t ops = 4 + random.below(3);
  for (std::size_t i = 0; i < ops; ++i) {
    std::vector<TraceBuilder::Touch> touches;
    for (std::size_t n = live.empty() ? 0 : random.below(3); n > 0; --n)
      touches.push_back({live[random.below(live.size())]});
    if (!live.empty() && random.chance(25))
      touches.push_back({live[random.below(live.size())], random.chance(70) ? Access::kReadWrite : Access::kWrite});
    else
      for (std::size_t n = random.chance(20) ? 2 : 1; n > 0; --n) {
        live.push_back(build.alloc({.size = size()}));
        touches.push_back({live.back(), Access::kWrite});
      }
    const bool source = touches.size() == 1 && random.chance(20);
    build.run({.kind = source ? OpKind::kSource : OpKind::kKernel,
               .duration = Nanos{static_cast<std::int64_t>(random.below(100))}},
              touches);
    if (live.size() > 3 && random.chance(50)) {
      const std::size_t i_freed = random.below(live.size());
      build.free(live[i_freed]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i_freed));
    }
  }
  std::vector<TraceBuilder::Touch> last;
  for (const BufferId b : live)
    if (random.chance(50)) last.push_back({b});
  build.run({.duration = Nanos{5}}, last);
  build.only_given_outputs();
  if (!live.empty() && random.chance(50)) build.output(build.content(live.front()));
  return build.finish();
}

}  // namespace

TEST_CASE("no bound on recomputation is above the time of the best schedule of a tiny step") {
  const Machine machine;
  int compared = 0, exact = 0, infeasible = 0, proved_infeasible = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const Trace trace = tiny_trace(seed);
    if (trace.versions().size() > 12) continue;
    BestSchedule best{trace};
    std::int64_t least_before = 0;
    for (std::int64_t bytes = trace.ideal_peak().count(); bytes > 0; bytes -= 3) {
      const BoundQuery query{.trace = trace, .machine = machine, .capacity = Bytes{bytes}, .remat = true};
      const auto time = best.time(query.capacity);
      const std::vector<Bound> bounds = compute_bounds(query, BoundEffort::kAll);
      INFO(fmt::format("seed {} capacity {}", seed, bytes));
      REQUIRE_FALSE(bounds.empty());
      if (!time) {
        ++infeasible;
        proved_infeasible += !bounds.back().feasible;
        break;
      }
      REQUIRE(*time >= least_before);
      least_before = *time;
      for (const Bound& bound : bounds) {
        INFO(fmt::format("{}: {}", bound.name, bound.proof));
        REQUIRE(bound.feasible);
        REQUIRE(bound.makespan.count() <= *time);
      }
      ++compared;
      exact += bounds.back().makespan.count() == *time;
    }
  }
  fmt::print("bounds on recomputation: {} of {} exact, {} of {} infeasible ones proved\n", exact, compared,
             proved_infeasible, infeasible);
  CHECK(compared > 100);
  CHECK(exact > 30);
  CHECK(proved_infeasible > 10);
}

TEST_CASE("on a short chain the best schedule is revolve's, and the bound equals its time") {
  // 4 layers, memory for x_0, two gradients and s slots: the optimum is 4 + 1 + 4 runs and 3 - s reruns, as with
  // revolve.
  const Trace trace = tests::chain_trace(4);
  const Machine machine;
  BestSchedule best{trace};
  for (const std::int64_t slots : {2, 3}) {
    const Bytes capacity{(3 + slots) * 1000};
    CHECK(best.time(capacity).value_or(0) == (9 + 3 - slots) * 1000);
    CHECK(best_bound({.trace = trace, .machine = machine, .capacity = capacity, .remat = true})->makespan ==
          Nanos{(9 + 3 - slots) * 1000});
  }
}

}  // namespace tidepool::bounds_exhaustive_test
