#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/oracle/steady.hpp"
#include "traces/builder.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::steady_optimum_test {

namespace {

/// The optimum. Checks that its plan replays, that the last cycle takes the reported time, and that the plan reads the
/// right bytes.
SteadyOptimum answer_of(const OptimumQuery& query) {
  const SteadyOptimum found = find_steady_optimum(query);
  CHECK(found.exact);
  if (!found.feasible) return found;
  const RunSpec spec{.pool = "ideal", .capacity = query.capacity, .machine = query.machine, .iterations = 2};
  replay(query.trace, spec, found.plan);
  const std::vector<Nanos> ends = iteration_ends(query.trace, query.machine, query.capacity, found.plan);
  REQUIRE(ends.size() > static_cast<std::size_t>(found.iterations));
  CHECK(ends.back() - ends[ends.size() - 1 - static_cast<std::size_t>(found.iterations)] == found.cycle);
  CHECK(execute_on_host(query.trace, found.plan, {.threads = false}).outcome == HostOutcome::kOk);
  return found;
}

/// A weight of 1 kB is used for 100 ns, then another buffer of 1 kB is made in 300 ns.
Trace weight_and_more(Access use) {
  TraceBuilder build;
  const BufferId w = build.existing({.size = 1'000_B});
  build.run({.duration = 100_ns}, {{w, use}});
  const BufferId b = build.alloc({.size = 1'000_B});
  build.run({.duration = 300_ns}, {{b, Access::kWrite}});
  build.free(b);
  return build.finish();
}

}  // namespace

TEST_CASE("a weight that does not change and cannot stay is swapped in once an iteration") {
  // With memory for one buffer, w is swapped in after b is freed, in 1 us. w needs no swap-out: 1000 + 100 + 300 ns.
  const Trace trace = weight_and_more(Access::kRead);
  const Machine machine = tests::byte_per_nano();
  CHECK(answer_of({trace, machine, 2'000_B, true, false}).mean() == 400_ns);
  CHECK(answer_of({trace, machine, 1'000_B, true, false}).mean() == 1'400_ns);
  CHECK(answer_of({trace, machine, 1'000_B, true, true, true}).mean() == 1'400_ns);
  CHECK_FALSE(answer_of({trace, machine, 1'000_B, false, true}).feasible);
}

TEST_CASE("a weight that is updated and cannot stay is swapped out and in once an iteration") {
  // b begins when w has left, and w is swapped in when b has ended: 100 + 1000 + 300 + 1000 ns in each iteration.
  const Trace trace = weight_and_more(Access::kReadWrite);
  const Machine machine = tests::byte_per_nano();
  CHECK(answer_of({trace, machine, 2'000_B, true, false}).mean() == 400_ns);
  CHECK(answer_of({trace, machine, 1'000_B, true, false}).mean() == 2'400_ns);
}

TEST_CASE("a swap-in continues from one iteration into the next") {
  // w (8 MiB) must be absent while op 3 makes d. Its swap-in takes 16 ms; the host always keeps its copy. The swap-in
  // begins when d has ended, and op 4 hides 6 ms of it. op 0 of the next iteration waits for the other 10 ms: 22 + 10
  // ms.
  TraceBuilder build;
  const BufferId w = build.existing({.size = 8_MiB});
  const BufferId a = build.alloc({.size = 2_MiB});
  build.run({.duration = 3_ms}, {{w}, {a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 2_MiB});
  build.run({.duration = 2_ms}, {{a}, {b, Access::kWrite}});
  build.run({.duration = 5_ms}, {{a, Access::kReadWrite}, {b}});
  build.free(a);
  const BufferId d = build.alloc({.size = 6_MiB});
  build.run({.kind = OpKind::kSource, .duration = 6_ms}, {{b}, {d, Access::kWrite}});
  build.free(d);
  build.run({.duration = 6_ms}, {{b, Access::kReadWrite}});
  build.free(b);
  const Trace trace = build.finish();
  Machine machine = tests::byte_per_nano();
  machine.h2d.rate = BytesPerSecond{524'288'000};  // 1 MiB in 2 ms
  const SteadyOptimum found = answer_of({trace, machine, 10_MiB, true, false});
  CHECK(found.mean() == 32_ms);
}

TEST_CASE("the search for a cycle gives up if an iteration may begin in too many states") {
  TraceBuilder build;  // eight weights, each at any of sixteen places
  std::vector<TraceBuilder::Touch> uses;
  for (int i = 0; i < 8; ++i) uses.push_back({build.existing({.size = 1'000_B})});
  build.run({.duration = 100_ns}, uses);
  const Trace trace = build.finish();
  const Machine machine = tests::byte_per_nano();
  OptimumQuery query{trace, machine, 16'000_B, true, false, true};
  query.most_states = 1'000;
  const SteadyOptimum found = find_steady_optimum(query);
  CHECK_FALSE(found.exact);
  CHECK_FALSE(found.feasible);
  CHECK(found.states <= 1'001);
}

}  // namespace tidepool::steady_optimum_test
