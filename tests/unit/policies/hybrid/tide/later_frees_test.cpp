// Inputs that stay after the program has freed them, so that large content can be recomputed from small inputs.
#include "policies/hybrid/tide/later_frees.hpp"

#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::later_frees_test {

namespace {

/// op0 writes x (10 us) | op1 makes g (1 MB) from x (5 us); x is freed | op2 writes w (2 MB, 20 us) | op3 reads g
/// (1 us).
Trace gradient(Bytes input) {
  TraceBuilder build;
  const BufferId x = build.alloc({.size = input});
  build.run({.duration = 10_us}, {{x, Access::kWrite}});
  const BufferId g = build.alloc({.size = 1'000'000_B});
  build.run({.duration = 5_us}, {{x, Access::kRead}, {g, Access::kWrite}});
  build.free(x);
  const BufferId w = build.alloc({.size = 2'000'000_B});
  build.run({.duration = 20_us}, {{w, Access::kWrite}});
  build.free(w);
  build.run({.duration = 1_us}, {{g, Access::kRead}});
  build.free(g);
  return build.finish();
}

std::vector<Event> steps_of(const Trace& trace) { return {trace.events().begin(), trace.events().end()}; }

}  // namespace

TEST_CASE("inputs stay until large content made from them has been read, if they take at most an eighth of it") {
  const std::optional<Trace> later = with_later_frees(gradient(125'000_B), 1'000'000_B);
  REQUIRE(later);
  std::vector<Event> expected = steps_of(gradient(125'000_B));
  // The steps are alloc x, op0, alloc g, op1, free x, alloc w, op2, free w, op3, free g. `free x` moves behind op3.
  std::rotate(expected.begin() + 4, expected.begin() + 5, expected.begin() + 9);
  CHECK(steps_of(*later) == expected);
  CHECK(!with_later_frees(gradient(125'001_B), 1'000'000_B));
  CHECK(!with_later_frees(gradient(125'000_B), 1'000'001_B));
}

TEST_CASE("an input that is overwritten before the content is read does not stay") {
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 100_B});
  build.run({.duration = 1_us}, {{x, Access::kWrite}});
  const BufferId g = build.alloc({.size = 1'000_B});
  build.run({.duration = 1_us}, {{x, Access::kRead}, {g, Access::kWrite}});
  build.run({.duration = 1_us}, {{x, Access::kReadWrite}});
  build.free(x);
  build.run({.duration = 1_us}, {{g, Access::kRead}});
  build.free(g);
  CHECK(!with_later_frees(build.finish(), 1_B));
}

TEST_CASE("tide recomputes large content from small inputs that it keeps after the program has freed them") {
  // While op2 runs, g must be absent. To copy it out and in would take 2 ms. If x is kept, only op1 runs again: 5 us.
  // Otherwise op0 would run again as well.
  const Trace trace = gradient(1'000_B);
  const Machine machine{.name = "test",
                        .capacity = 1_GiB,
                        .h2d = {BytesPerSecond{1'000'000'000}, 0_ns},
                        .d2h = {BytesPerSecond{1'000'000'000}, 0_ns},
                        .source = "made up for tests"};
  for (const bool steady : {false, true})
    for (const char* pool : {"ideal", "best-fit", "bfc"}) {  // bfc requests its regions from the device
      INFO(pool << (steady ? ", repeated" : ", once"));
      RunSpec spec{.pool = pool, .policy = "tide", .capacity = 2'010'000_B, .machine = machine};
      spec.steady = steady;
      spec.iterations = steady ? 20 : 1;
      const Result run = simulate(trace, spec, true);
      REQUIRE(run.outcome == Outcome::kOk);
      CHECK(run.totals.makespan == 36_us + 5_us);
      CHECK(replay(trace, spec, run.realised) == run.totals);
    }
}

}  // namespace tidepool::later_frees_test
