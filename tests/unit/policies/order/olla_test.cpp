// OLLA's integer program for the order of ops: compared with the best of all orders, and steps that it does not solve.
#include "simulator/run.hpp"
#include "simulator/solvers/order/search.hpp"
#include "tests/catch.hpp"
#include "tests/graph_trace.hpp"
#include "tests/known_uses.hpp"
#include "tests/machines.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::olla_test {

using tests::two_branches;

namespace {

RunSpec spec_of(const char* policy, Bytes capacity) {
  return {.pool = "ideal", .policy = policy, .capacity = capacity, .machine = tests::uneven()};
}

}  // namespace

TEST_CASE("OLLA finds the order with the least peak") {
  // In the order X, x, Y, y the peak is 40 B. With Y first it is 10 + 30 + 10 B; with both first, 30 + 20 + 10 B.
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

TEST_CASE("OLLA's order has the peak of the best of all orders of random steps") {
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

TEST_CASE("a step with more ops than the limit of OLLA's program keeps its order") {
  CHECK_FALSE(simulate(two_branches(), spec_of("olla(ops=4)", 70_B), true).realised.order);
  CHECK(simulate(two_branches(), spec_of("olla(ops=5)", 70_B), true).realised.order);
  // The recorded order is kept if the memory is enough for it.
  CHECK_FALSE(simulate(two_branches(), spec_of("olla", 71_B), true).realised.order);
}

}  // namespace tidepool::olla_test
