// The storage tier beyond the host, computed by hand.
#include "simulator/engine/exposed_copies.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/plan_writer.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::storage_test {

using tests::PlanWriter;

namespace {

/// op0 writes a and b (1000 B each), 10 ns | op1 takes 100 ns | op2 reads both, 10 ns.
struct Example {
  VersionId a, b;
  Trace trace = make();

  Trace make() {
    TraceBuilder build;
    const BufferId a_buffer = build.alloc({.size = 1000_B}), b_buffer = build.alloc({.size = 1000_B});
    const auto made = build.run({.duration = 10_ns}, {{a_buffer, Access::kWrite}, {b_buffer, Access::kWrite}});
    a = made[0], b = made[1];
    build.run({.duration = 100_ns}, {});
    build.run({.duration = 10_ns}, {{a_buffer}, {b_buffer}});
    build.free(a_buffer), build.free(b_buffer);
    return build.finish();
  }

  /// a and b are swapped out after op0 and swapped in for op2.
  Plan plan() const {
    PlanWriter plan{trace};
    plan.alloc(a, 0_B).alloc(b, 1000_B).run(OpId{0}).swap_out(a).swap_out(b).drop(a).drop(b).run(OpId{1});
    return plan.swap_in(a, 0_B).swap_in(b, 1000_B).run(OpId{2}).free(a).free(b).plan();
  }
};

/// Per byte, copies take 1 ns to the host, 1 ns back, 2 ns to storage, and 4 ns back from storage.
Machine tiers(Bytes host, Bytes storage) {
  Machine machine = tests::byte_per_nano();
  machine.host.capacity = host;
  machine.storage = {
      .write = {BytesPerSecond{500'000'000}, 0_ns}, .read = {BytesPerSecond{250'000'000}, 0_ns}, .capacity = storage};
  return machine;
}

RunSpec on(const Machine& machine, Bytes capacity = kNoLimit, const std::string& policy = "none") {
  return {.pool = "best-fit(alignment=1B)",
          .policy = policy,
          .capacity = capacity,
          .machine = machine,
          .overhead_limit = {}};
}

}  // namespace

TEST_CASE("versions that do not fit on the host go to storage, whose copies have their own queues") {
  const Example example;
  const auto run = [&](Bytes host) { return replay(example.trace, on(tiers(host, 2000_B)), example.plan()); };
  // Both go to the host: a is back when b has left.
  CHECK(run(2000_B).makespan == 10_ns + 2000_ns + 1000_ns + 10_ns);
  CHECK(run(2000_B).host_peak == 2000_B);
  CHECK(run(2000_B).storage_peak == 0_B);
  // a goes to the host and back beside b, which takes 2 us to storage and 4 us back.
  CHECK(run(1999_B).makespan == 10_ns + 2000_ns + 4000_ns + 10_ns);
  CHECK(run(1999_B).host_peak == 1000_B);
  CHECK(run(1999_B).storage_peak == 1000_B);
  CHECK(run(1999_B).swap_out == 2000_B);
  CHECK(run(1999_B).swap_in == 2000_B);
  // Both go to storage.
  CHECK(run(999_B).makespan == 10_ns + 4000_ns + 8000_ns - 2000_ns + 10_ns);  // a is read while b is written
  CHECK(run(999_B).storage_peak == 2000_B);
}

TEST_CASE("a wait for a copy from storage is charged to copies from storage, for the time that they take") {
  const Example example;
  const auto exposed = [&](Bytes host) {
    const ExposedCopies found = exposed_copies(example.trace, on(tiers(host, 2000_B)), example.plan());
    return std::pair{found.in[example.a.index()], found.in[example.b.index()]};
  };
  // Op 2 waits 5.9 us. a is back from the host early; b takes 4 us from storage, after 2 us to storage.
  CHECK(exposed(1999_B) == std::pair{0_ns, 4000_ns});
  // Op 2 waits 9.9 us, and the copies from storage follow each other.
  CHECK(exposed(999_B) == std::pair{4000_ns, 4000_ns});
}

TEST_CASE("copies that share the link to the host do not slow those to storage") {
  const Example example;
  Machine machine = tiers(1999_B, 2000_B);
  machine.h2d.duplex_ppm = machine.d2h.duplex_ppm = 500'000;
  CHECK(replay(example.trace, on(machine), example.plan()).makespan == 10_ns + 2000_ns + 4000_ns + 10_ns);
}

TEST_CASE("a copy that fits neither on the host nor in storage is refused with the bytes in use of both") {
  const Example example;
  CHECK_THROWS_WITH(
      replay(example.trace, on(tiers(1000_B, 999_B)), example.plan()),
      "swap out version 1 before op 1: it takes 1000 B on the host, where 1000 B are in use of 1000 B, and "
      "1000 B in storage, where 0 B are in use of 999 B");

  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 10_ns}, {{a}});
  build.free(a);
  const Trace trace = build.finish();
  const Result full = simulate(trace, on(tiers(999_B, 999_B), 1000_B, "lru-swap"));
  CHECK(full.outcome == Outcome::kOutOfMemory);
  CHECK(full.message ==
        "op 1 wants 1000 B for buffer 1; 1000 B are held of 1000 B, the largest hole is 0 B, 0 B are in use of 999 B "
        "on the host, 0 B of 999 B in storage, and no policy makes room");
  const Result stored = simulate(trace, on(tiers(999_B, 1000_B), 1000_B, "lru-swap"), true);
  CHECK(stored.outcome == Outcome::kOk);
  CHECK(stored.totals.makespan == 10_ns + 2000_ns + 10_ns + 4000_ns + 10_ns);
  CHECK(execute_on_host(trace, stored.realised).outcome == HostOutcome::kOk);
}

TEST_CASE("bounds add the rates of both tiers") {
  // 1000 B must be absent during an op of 0 ns. They leave at 1 + 0.5 B per ns and come back at 1 + 0.25 B per ns.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 1000_B});
  build.run({.duration = 0_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 10_ns}, {{a}});
  build.free(a);
  const Trace trace = build.finish();
  for (const bool tiered : {false, true}) {
    const Machine machine = tiers(1_GiB, tiered ? 1_GiB : 0_B);
    const BoundQuery query{.trace = trace, .machine = machine, .capacity = 1000_B, .swap = true};
    const std::int64_t exact = tiered ? 20 + 667 + 800 : 20 + 1000 + 1000;
    for (const Bound& bound : compute_bounds(query, BoundEffort::kAll)) CHECK(bound.makespan.count() <= exact);
    CHECK(best_bound(query)->makespan.count() >= exact - 4);
  }
}

TEST_CASE("memory is freed by the copy that ends first, not by the one that was issued first") {
  // op 0 writes a (1500 B) and b (1000 B) | op 1 writes c (1000 B) | op 2 reads b | op 3 reads a. The capacity is 2500
  // B.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1500_B}), b = build.alloc({.size = 1000_B});
  const auto made = build.run({.duration = 10_ns}, {{a, Access::kWrite}, {b, Access::kWrite}});
  const BufferId c = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{c, Access::kWrite}});
  build.free(c);
  build.run({.duration = 10_ns}, {{b}});
  build.run({.duration = 10_ns}, {{a}});
  build.free(a), build.free(b);
  const Trace trace = build.finish();
  // a is too large for the host and takes 3 us to storage. b is issued later and takes 1 us to the host. Then op 1
  // begins, and b is swapped in in 1 us. a is needed again before it has left, so it stays.
  tests::script() = {{Verb::kSwapOut, OpId{1}, made[0].value(), {}, {}},
                     {Verb::kSwapOut, OpId{1}, made[1].value(), {}, {}}};
  const RunSpec spec = on(tiers(1000_B, 2000_B), 2500_B, "scripted");
  const Result result = simulate(trace, spec, true);
  tests::script().clear();
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.stall.compute == 1000_ns + 1000_ns);
  CHECK(result.totals.makespan == 10_ns + 3000_ns);  // the ops have ended by 2040 ns
  CHECK(replay(trace, spec, result.realised) == result.totals);
}

}  // namespace tidepool::storage_test
