// OLLA's integer program for the order of ops: against the best of all orders, and where it is not solved.
#include "simulator/order/exact_order.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/graph_trace.hpp"
#include "tests/known_uses.hpp"
#include "tests/machines.hpp"
#include "validator/host/host_backend.hpp"

using namespace tidepool;
using tests::two_branches;

namespace {

RunSpec spec_of(const char* policy, Bytes capacity) {
  return {.pool = "ideal", .policy = policy, .capacity = capacity, .machine = tests::uneven()};
}

}  // namespace

TEST_CASE("OLLA finds the order with the least peak") {
  // X and x, then Y and y: 40 B. Y first: 10 + 30 + 10. Both first: 30 + 20 + 10.
  const Trace trace = two_branches();
  const RunSpec spec = spec_of("olla", 40_B);
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  REQUIRE(result.realised.order);
  CHECK(result.realised.order->ops == std::vector<std::uint32_t>{0, 2, 1, 3, 4});
  CHECK(result.totals.makespan == result.baseline);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  CHECK(simulate(trace, spec_of("olla", 39_B)).outcome != Outcome::kOk);
}

TEST_CASE("OLLA's order is as good as the best of all orders of random steps") {
  int lower = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const std::optional<Trace> trace = tests::step_of_known_uses(seed, 9);
    if (!trace) continue;
    INFO("seed " << seed);
    const Lifetimes lifetimes{*trace};
    const OpOrder best = exact_order(lifetimes, dependencies_of(*trace), 1'000'000);
    REQUIRE(best.exact);
    if (best.peak >= trace->ideal_peak()) continue;
    ++lower;
    const Result result = simulate(*trace, spec_of("olla", best.peak), true);
    REQUIRE(result.outcome == Outcome::kOk);
    REQUIRE(result.realised.order);
    CHECK(lifetimes.peak(result.realised.order->ops) == best.peak);
    const HostReport report = execute_on_host(*trace, result.realised, {.threads = false, .arena = 1_MiB});
    CHECK((report.outcome == HostOutcome::kOk && report.corrupt == 0_B));
  }
  CHECK(lower >= 10);
}

TEST_CASE("a step with more ops than OLLA's program may have keeps its order") {
  CHECK_FALSE(simulate(two_branches(), spec_of("olla(ops=4)", 70_B), true).realised.order);
  CHECK(simulate(two_branches(), spec_of("olla(ops=5)", 70_B), true).realised.order);
  // With the memory for the recorded order, it stays.
  CHECK_FALSE(simulate(two_branches(), spec_of("olla", 71_B), true).realised.order);
}
