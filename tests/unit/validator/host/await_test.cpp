// Times, in closed form, of waiting for a copy that no op needs.
#include <memory>
#include <utility>
#include <vector>

#include "simulator/policy.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/plan_writer.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::await_test {

using tests::PlanWriter;
using tests::script;

namespace {

const RunSpec kSpec{.pool = "ideal", .policy = "scripted", .capacity = 1_GiB, .machine = tests::byte_per_nano()};

/// op0 writes a (100 B) | op1 takes `busy` | op2 takes 10 ns | op3 takes `busy` | op4 reads a.
Trace a_twice(Nanos busy) {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  build.run({.duration = busy}, {});
  build.run({.duration = 10_ns}, {});
  build.run({.duration = busy}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

/// Swaps version 0 out before op 1, and waits for its copies whenever a place is requested.
class Awaits final : public Policy {
 public:
  bool anticipates() const override { return true; }
  void before_run(const View&, OpId op, std::vector<Action>& out) override {
    if (op == OpId{1}) out.push_back({Verb::kSwapOut, {}, 0, {}, {}});
  }
  void before_place(const View&, const Request&, std::vector<Action>& out) override {
    out.push_back({Verb::kAwait, {}, 0, {}, {}});
  }
};

Action act(Verb verb, std::size_t before, VersionId subject) { return {verb, OpId{before}, subject.value(), {}, {}}; }

}  // namespace

TEST_CASE("an awaited swap-out is waited for although no op needs its memory") {
  // The copy takes 100 ns and runs beside op1.
  for (const auto& [busy, stall] : {std::pair{100_ns, 0_ns}, std::pair{99_ns, 1_ns}, std::pair{10_ns, 90_ns}}) {
    const Trace trace = a_twice(busy);
    const VersionId a = trace.made(OpId{0})[0];
    script() = {act(Verb::kSwapOut, 1, a), act(Verb::kAwait, 2, a)};
    const Result result = simulate(trace, kSpec, true);
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.totals.stall.d2h == stall);
    script().pop_back();
    CHECK(simulate(trace, kSpec).totals.stall.d2h == 0_ns);
    CHECK(replay(trace, kSpec, result.realised) == result.totals);
    CHECK(execute_on_host(trace, result.realised, {.threads = true}).outcome == HostOutcome::kOk);
  }
  script().clear();
}

TEST_CASE("an awaited version that is copied and kept stays on the device") {
  const Trace trace = a_twice(100_ns);
  const VersionId a = trace.made(OpId{0})[0];
  script() = {act(Verb::kSwapOut, 1, a), act(Verb::kAwait, 1, a), act(Verb::kSwapIn, 1, a)};
  const Result result = simulate(trace, kSpec, true);
  CHECK(result.totals.stall.d2h == 100_ns);
  CHECK(result.totals.swap_in == 0_B);
  CHECK(result.totals.eviction_count == 0);
  script().clear();
}

TEST_CASE("an awaited swap-in is waited for before an op reads the version") {
  // a has left when op2 begins. Its swap-in (100 ns) begins with op2 (10 ns), so the await stops op3 for 90 ns. Without
  // it, op3, which does not use a, would not wait.
  const Trace trace = a_twice(200_ns);
  const VersionId a = trace.made(OpId{0})[0];
  script() = {act(Verb::kSwapOut, 1, a), act(Verb::kSwapIn, 2, a), act(Verb::kAwait, 3, a)};
  const Result result = simulate(trace, kSpec, true);
  CHECK(result.totals.stall.h2d == 90_ns);
  CHECK(replay(trace, kSpec, result.realised) == result.totals);
  CHECK(execute_on_host(trace, result.realised, {.threads = true}).outcome == HostOutcome::kOk);
  script().pop_back();
  CHECK(simulate(trace, kSpec).totals.stall.compute == 0_ns);
  script().clear();
}

TEST_CASE("a wait for a copy takes into account that both directions share the link") {
  // The copy of a takes 100 ns alone. While b is swapped in, it runs at half its rate: 200 ns, 190 ns more than op1.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B}), b = build.existing({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{a}, {b}});
  const Trace trace = build.finish();
  RunSpec spec = kSpec;
  spec.machine.d2h.duplex_ppm = spec.machine.h2d.duplex_ppm = 500'000;
  const VersionId made = trace.made(OpId{0})[0], before = trace.first_version(BufferId{1});
  script() = {act(Verb::kSwapOut, 0, before), act(Verb::kSwapOut, 1, made), act(Verb::kSwapIn, 1, before),
              act(Verb::kAwait, 2, made)};
  const Result result = simulate(trace, spec, true);
  CHECK(result.totals.stall.d2h == 190_ns);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  script().clear();
}

TEST_CASE("waiting for a version that is not on the host, or at the end, is refused") {
  const Trace trace = a_twice(10_ns);
  const VersionId a = trace.made(OpId{0})[0];
  PlanWriter none{trace};
  none.alloc(a, 0_B).run(OpId{0}).await(a);
  CHECK_THROWS_WITH(replay(trace, kSpec, none.plan()), "await version 0 before op 1: it is not on the host");
  PlanWriter late{trace};
  late.alloc(a, 0_B).run(OpId{0}).swap_out(a).run_to(OpId{4}).await(a);
  CHECK_THROWS_WITH(replay(trace, kSpec, late.plan()), "await version 0 after the last op: no op follows");
  CHECK_THROWS_WITH(execute_on_host(trace, late.plan(), {}), "await version 0 after the last op: no op follows");
}

TEST_CASE("a policy cannot wait for a copy when outputs are brought back at the end, since no op follows") {
  // op0 writes a (100 B) | op1 writes b (100 B), which takes the place of a and is freed. The output a returns then.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{b, Access::kWrite}});
  build.free(b);
  const Trace trace = build.finish();
  RunSpec spec = kSpec;
  spec.capacity = 100_B;
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(std::make_unique<Awaits>());
  CHECK_THROWS_WITH(simulate_under(trace, spec, std::move(policies), false),
                    "await version 0 after the last op: no op follows");
}

}  // namespace tidepool::await_test
