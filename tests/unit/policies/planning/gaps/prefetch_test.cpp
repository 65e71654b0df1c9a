// Drafts that swap content in early, within a step and across two steps, in closed form.
#include "policies/planning/gaps/copy_draft.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"

namespace tidepool::prefetch_test {

using tidepool::tests::script;

namespace {

/// 1 GB/s each way without latency: 1 B takes 1 ns.
const Machine kMachine = tests::byte_per_nano();

Result scripted(const Trace& trace, std::vector<Action> actions, Bytes capacity, int iterations = 1) {
  script() = std::move(actions);
  const RunSpec spec{
      .pool = "ideal", .policy = "scripted", .capacity = capacity, .machine = kMachine, .iterations = iterations};
  Result result = simulate(trace, spec, true);
  script().clear();
  if (result.outcome == Outcome::kOk) CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

Action act(Verb verb, std::size_t before, VersionId subject) { return {verb, OpId{before}, subject.value(), {}, {}}; }

/// op0 writes a (100 B) | op1 writes b (100 B), 1000 ns | b is freed | op2, 50 ns | op3, `last` ns | op4 reads a.
Trace a_around_b(Nanos last) {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 1000_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 50_ns}, {});
  build.run({.duration = last}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

}  // namespace

TEST_CASE("a swap-in of a draft that does not fit is tried again before every op") {
  // op0 writes a (100 B) | op1 writes b (100 B) | op2 reads b | b is freed | op3, 50 ns | op4, `last` ns | op5 reads a.
  // The swap-in of a is requested before op2, while b uses all memory. Before op3, b has been freed, and the swap-in
  // starts; it takes 100 ns. op5 could start 50 ns + `last` after op2. If a came in only
  // for op5, that op would wait 100 ns.
  for (const auto& [last, stall] : {std::pair{50_ns, 100_ns}, std::pair{49_ns, 101_ns}}) {
    TraceBuilder build;
    const BufferId kept = build.alloc({.size = 100_B});
    build.run({.duration = 10_ns}, {{kept, Access::kWrite}});
    const BufferId b = build.alloc({.size = 100_B});
    build.run({.duration = 500_ns}, {{b, Access::kWrite}});
    build.run({.duration = 500_ns}, {{b, Access::kRead}});
    build.free(b);
    build.run({.duration = 50_ns}, {});
    build.run({.duration = last}, {});
    build.run({.duration = 10_ns}, {{kept, Access::kRead}});
    build.free(kept);
    const Trace trace = build.finish();
    const VersionId a = trace.made(OpId{0})[0];
    const Result result = scripted(trace, {act(Verb::kSwapOut, 1, a), act(Verb::kSwapIn, 2, a)}, 100_B);
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.totals.stall.compute == stall);  // 100 ns of the stall are before op1, until a has left
    CHECK(result.totals.swap_in == 100_B);
  }
}

TEST_CASE("a swap-in of a draft starts during an op, when a swap-out ends and frees its memory") {
  // c (100 B) leaves from 20 to 120 ns, during op2. a is swapped in from 120 to 220 ns, long before op3 begins at 1020
  // ns.
  TraceBuilder build;
  const BufferId a = build.existing({.size = 100_B});
  const BufferId c = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{c, Access::kWrite}});
  build.run({.duration = 1000_ns}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.only_given_outputs();
  const Trace trace = build.finish();
  const VersionId first = trace.first_version(BufferId{0}), made = trace.made(OpId{1})[0];
  const std::vector<Action> draft{act(Verb::kSwapOut, 0, first), act(Verb::kSwapOut, 2, made),
                                  act(Verb::kSwapIn, 2, first)};
  const Result result = scripted(trace, draft, 100_B);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.stall.compute == 0_ns);
  CHECK(result.totals.swap_in == 100_B);
}

TEST_CASE("a swap-in of a version whose swap-out is under way keeps the version") {
  const Trace trace = a_around_b(50_ns);
  const VersionId a = trace.made(OpId{0})[0];
  const Result result = scripted(trace, {act(Verb::kSwapOut, 1, a), act(Verb::kSwapIn, 1, a)}, 200_B);
  CHECK(result.totals.stall.compute == 0_ns);
  CHECK(result.totals.swap_in == 0_B);
  CHECK(result.totals.eviction_count == 0);
}

TEST_CASE("content with a gap across the end of the step begins on the host, and every iteration is the same") {
  // op2 reads and changes the parameter (100 B). It is absent from op3 to the next op1, because op0 needs its memory
  // for b.
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 100_B});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 500_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 300_ns}, {});
  build.run({.duration = 10_ns}, {{weight, Access::kReadWrite}});
  build.run({.duration = 200_ns}, {});
  const Trace trace = build.finish();
  const VersionId first = trace.first_version(BufferId{0}), last = trace.made(OpId{2})[0];
  const std::vector<Action> draft{act(Verb::kSwapOut, 0, first), act(Verb::kSwapIn, 1, first),
                                  act(Verb::kSwapOut, 3, last)};
  for (const int iterations : {1, 2, 4}) {
    const Result result = scripted(trace, draft, 100_B, iterations);
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.totals.makespan == 1010_ns);
    CHECK(result.totals.swap_in == 100_B);
    CHECK(result.totals.swap_out == 100_B);
  }
}

TEST_CASE("a version that a draft copies out stays until the draft releases it, even if that is at once") {
  const Trace trace = a_around_b(50_ns);
  const VersionId a = trace.made(OpId{0})[0];
  const auto drafted = [&](std::uint32_t released) {
    CopyDraft copies{trace};
    copies.copy_out(1, a);
    copies.release(released, a);
    copies.copy_back(4, a);
    return scripted(trace, copies.take(), 200_B);
  };
  // Released before op1 (or op2), a has left when op2 begins, and is swapped in in 100 ns before op4. Released after
  // the last op, it stays.
  CHECK(drafted(1).totals.swap_in == 100_B);
  CHECK(drafted(1).totals.stall.h2d == 100_ns);
  CHECK(drafted(2).totals.swap_in == 100_B);
  CHECK(drafted(5).totals.swap_in == 0_B);
  CHECK(drafted(5).totals.swap_out == 100_B);
}

}  // namespace tidepool::prefetch_test
