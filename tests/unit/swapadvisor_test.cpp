// SwapAdvisor's search over the order of ops together with the slots of memory, on a step with two orders.
#include <numeric>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"
#include "validator/host/host_backend.hpp"

using namespace tidepool;

namespace {

/// Two gradients of 50 B, made one after the other, and an update of each weight (10 B) at the end: 120 B at once.
Trace two_updates() {
  TraceBuilder build;
  const BufferId weight[] = {build.existing({.size = 10_B}), build.existing({.size = 10_B})};
  BufferId gradient[2];
  for (BufferId& each : gradient) {
    each = build.alloc({.size = 50_B});
    build.run({.name = build.text("backward"), .duration = 100_ns}, {{each, Access::kWrite, Evidence::kSchema}});
  }
  for (int i = 0; i < 2; ++i)
    build.run({.name = build.text("update"), .duration = 10_ns},
              {{weight[i], Access::kReadWrite, Evidence::kSchema}, {gradient[i], Access::kRead, Evidence::kSchema}});
  for (const BufferId each : gradient) build.free(each);
  return build.finish();
}

RunSpec spec_of(const char* policy, Bytes capacity) {
  return {.pool = "ideal", .policy = policy, .capacity = capacity, .machine = tests::uneven(), .overhead_limit = {}};
}

}  // namespace

TEST_CASE("SwapAdvisor finds the order that needs no copies") {
  // 70 B are two slots for the weights and one for gradients. Recorded, the first gradient leaves for the second, and
  // the second one for the first at its update.
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
  // Either gradient may come first, and its update next.
  const std::vector<std::uint32_t> order = result.realised.order->ops;
  CHECK((order == std::vector<std::uint32_t>{0, 2, 1, 3} || order == std::vector<std::uint32_t>{1, 3, 0, 2}));
  CHECK(replay(trace, spec, result.realised) == result.totals);
  const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 1_MiB});
  CHECK((report.outcome == HostOutcome::kOk && report.corrupt == 0_B));
}

TEST_CASE("SwapAdvisor keeps the recorded order where the step fits in it, or no allocation does") {
  const Trace trace = two_updates();
  CHECK_FALSE(simulate(trace, spec_of("swapadvisor(granule=10B)", 120_B), true).realised.order);
  // An update needs 60 B, so that Belady's rule on the run's own pool can do with them; slots would be 50 + 2 * 10.
  const Result tight = simulate(trace, spec_of("swapadvisor(granule=10B)", 60_B), true);
  CHECK(tight.outcome == Outcome::kOk);
}
