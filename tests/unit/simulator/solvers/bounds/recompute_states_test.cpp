// The search through the states of memory, in closed form and compared with the best schedules of tiny steps.
#include "simulator/solvers/bounds/recompute_states.hpp"

#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "traces/builder.hpp"

namespace tidepool::recompute_states_test {

namespace {

constexpr std::int64_t kEnough = 1'000'000;

/// op0 makes a | op1 updates a in place and makes b | op2 makes c | op3 reads b and updates a | op4 reads a and updates
/// c. Each buffer has 4 MiB. The ops take 3, 2, 1, 1 and 3 ms.
Trace updated_with_another_output() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 4_MiB});
  build.run({.duration = 3_ms}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 4_MiB});
  build.run({.duration = 2_ms}, {{a, Access::kReadWrite}, {b, Access::kWrite}});
  const BufferId c = build.alloc({.size = 4_MiB});
  build.run({.duration = 1_ms}, {{c, Access::kWrite}});
  build.run({.duration = 1_ms}, {{b}, {a, Access::kReadWrite}});
  build.run({.duration = 3_ms}, {{a}, {c, Access::kReadWrite}});
  for (const BufferId buffer : {a, b, c}) build.free(buffer);
  return build.finish();
}

}  // namespace

TEST_CASE("the least recomputation of a short chain is revolve's") {
  // As with revolve, 4 layers with s slots beside x_0 take 3 - s more runs.
  const Trace trace = tests::chain_trace(4);
  for (const std::int64_t slots : {2, 3}) {
    const RecomputeStates found = recompute_states(trace, Bytes{(3 + slots) * 1000}, kEnough);
    CHECK(found.exact);
    CHECK(found.least == (3 - slots) * 1000);
  }
}

TEST_CASE("a search that ends early proves a bound: the length of the paths that it has expanded") {
  const Trace trace = updated_with_another_output();
  const RecomputeStates whole = recompute_states(trace, 8_MiB, kEnough);
  REQUIRE(whole.exact);
  REQUIRE(whole.least > 0);
  std::int64_t before = 0;
  int partial = 0;
  for (std::int64_t work = 0; work < 200; ++work) {
    const RecomputeStates found = recompute_states(trace, 8_MiB, work);
    REQUIRE(found.feasible);
    REQUIRE(found.least >= before);
    REQUIRE(found.least <= whole.least);
    partial += !found.exact && found.least > 0 ? 1 : 0;
    before = found.least;
  }
  CHECK(partial > 0);
}

TEST_CASE("a step is infeasible if no order of reruns gives an op all its inputs at once") {
  // Op 2 makes c, and a and b do not both fit beside it. Neither can be recomputed, since op 1 has updated a source's
  // output in place. Keeping that output as well would take 4 MiB more. All buffers have 4 MiB.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 4_MiB});
  build.run({.kind = OpKind::kSource, .duration = 1_ms}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 4_MiB});
  build.run({.duration = 1_ms}, {{a, Access::kReadWrite}, {b, Access::kWrite}});
  const BufferId c = build.alloc({.size = 4_MiB});
  build.run({.duration = 1_ms}, {{c, Access::kWrite}});
  build.free(c);
  build.run({.duration = 1_ms}, {{a}, {b}});
  const Trace trace = build.finish();
  CHECK_FALSE(recompute_states(trace, 11_MiB, kEnough).feasible);
  // In 12 MiB, all three buffers fit.
  const RecomputeStates fits = recompute_states(trace, 12_MiB, kEnough);
  CHECK(fits.exact);
  CHECK(fits.least == 0);
  const Machine machine;
  const std::vector<Bound> bounds =
      compute_bounds({.trace = trace, .machine = machine, .capacity = 11_MiB, .remat = true}, BoundEffort::kQuick);
  CHECK(bounds.back().name == "memory-states");
  CHECK_FALSE(bounds.back().feasible);
}

}  // namespace tidepool::recompute_states_test
