// SwapAdvisor's joint search for the order of ops and the slots of memory, on a step with two orders.
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/updates_trace.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::swapadvisor_test {

using tests::two_updates;

namespace {

RunSpec spec_of(const char* policy, Bytes capacity) {
  return {.pool = "ideal", .policy = policy, .capacity = capacity, .machine = tests::uneven(), .overhead_limit = {}};
}

}  // namespace

TEST_CASE("SwapAdvisor finds the order that needs no copies") {
  // 70 B are two slots for the weights and one for gradients. In the recorded order, the first gradient is swapped out
  // for the second one, and the second one for the first one's update.
  const Trace trace = two_updates();
  const Result fixed = simulate(trace, spec_of("swapadvisor(granule=10B,with=swap)", 70_B));
  REQUIRE(fixed.outcome == Outcome::kOk);
  CHECK(fixed.totals.swap_out == 100_B);
  CHECK(fixed.totals.makespan > fixed.baseline);
  const RunSpec spec = spec_of("swapadvisor(granule=10B)", 70_B);
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.swap_out == 0_B);
  CHECK(result.totals.makespan == result.baseline);
  REQUIRE(result.realised.order);
  // Either gradient may come first, directly followed by its update.
  const std::vector<std::uint32_t> order = result.realised.order->ops;
  CHECK((order == std::vector<std::uint32_t>{0, 2, 1, 3} || order == std::vector<std::uint32_t>{1, 3, 0, 2}));
  CHECK(replay(trace, spec, result.realised) == result.totals);
  const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 1_MiB});
  CHECK((report.outcome == HostOutcome::kOk && report.corrupt == 0_B));
}

TEST_CASE("SwapAdvisor keeps the recorded order if the step fits in it, or if no allocation of slots fits") {
  const Trace trace = two_updates();
  CHECK_FALSE(simulate(trace, spec_of("swapadvisor(granule=10B)", 120_B), true).realised.order);
  // An update needs 60 B, which are enough for Belady's rule on the run's own pool; slots would need 50 + 2 * 10 B.
  const Result tight = simulate(trace, spec_of("swapadvisor(granule=10B)", 60_B), true);
  CHECK(tight.outcome == Outcome::kOk);
}

}  // namespace tidepool::swapadvisor_test
