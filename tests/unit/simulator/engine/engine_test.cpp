// Small steps in closed form: their times, places and actions are derived by hand.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "simulator/policy.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/scripted_policy.hpp"
#include "traces/builder.hpp"

namespace tidepool::engine_test {

using tidepool::tests::script;

namespace {

/// 1 GB/s each way without latency: 1 B takes 1 ns.
const Machine kMachine = tests::byte_per_nano();

RunSpec under(const std::string& policy, Bytes capacity = kNoLimit) {
  return {.pool = "best-fit(alignment=1B)",
          .policy = policy,
          .capacity = capacity,
          .machine = kMachine,
          .overhead_limit = {}};
}

Action act(Verb verb, std::size_t before, std::size_t subject, std::int64_t offset = 0, std::int64_t size = 0) {
  return {verb, OpId{before}, static_cast<std::uint32_t>(subject), Bytes{offset}, Bytes{size}};
}

/// Runs with a script and returns the result with its plan.
Result scripted(const Trace& trace, std::vector<Action> actions, RunSpec spec = under("scripted")) {
  script() = std::move(actions);
  Result result = simulate(trace, spec, true);
  script().clear();
  if (result.outcome == Outcome::kOk) CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

/// The runs of a plan, in order.
std::vector<std::size_t> runs(const Plan& plan) {
  std::vector<std::size_t> ops;
  for (const Action& action : plan.actions)
    if (action.verb == Verb::kRun) ops.push_back(action.subject);
  return ops;
}

/// op0 writes a (1000 B) | op1 takes `busy` | op2 reads a.
Trace busy_between(Nanos busy) {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  build.run({.duration = busy}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

}  // namespace

TEST_CASE("a swap costs only the part of its time that no op hides") {
  // a is swapped out from 10 to 1010 ns and in from 1010 to 2010 ns; op1 ends at 10 ns + busy. op2 waits for
  // op1 and for the swap-in.
  const Plan around{{act(Verb::kAlloc, 0, 0, 0, 1000), act(Verb::kRun, 0, 0), act(Verb::kSwapOut, 1, 0),
                     act(Verb::kDrop, 1, 0), act(Verb::kSwapIn, 1, 0, 0, 1000), act(Verb::kRun, 1, 1),
                     act(Verb::kRun, 2, 2), act(Verb::kFree, 2, 0)}};
  for (const auto& [busy, stall] : {std::pair{2000_ns, 0_ns}, std::pair{1999_ns, 1_ns}, std::pair{500_ns, 1500_ns}}) {
    const Totals totals = replay(busy_between(busy), under("none"), around);
    CHECK(totals.stall.compute == stall);
    CHECK(totals.stall.h2d == stall);
    CHECK(totals.makespan == 20_ns + busy + stall);
    CHECK(totals.swap_out == 1000_B);
    CHECK(totals.swap_in == 1000_B);
    CHECK(totals.eviction_count == 1);
  }
}

TEST_CASE("a copy waits for the op that was issued before it, and for its copy engine") {
  // The swap-in is issued before op2, so it starts when op1 has ended, although the copy engine is free earlier.
  const Plan late{{act(Verb::kAlloc, 0, 0, 0, 1000), act(Verb::kRun, 0, 0), act(Verb::kSwapOut, 1, 0),
                   act(Verb::kRun, 1, 1), act(Verb::kDrop, 2, 0), act(Verb::kSwapIn, 2, 0, 0, 1000),
                   act(Verb::kRun, 2, 2), act(Verb::kFree, 2, 0)}};
  CHECK(replay(busy_between(5000_ns), under("none"), late).makespan == 10_ns + 5000_ns + 1000_ns + 10_ns);
}

TEST_CASE("a place is reused only after the swap-out of its content has ended") {
  // b gets a's place. a is swapped out from 10 to 1010 ns, so op1, which writes b, starts then.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 800_B});
  build.run({.duration = 5_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  const Trace trace = build.finish();
  const Result result = simulate(trace, under("lru-swap", 1000_B), true);
  REQUIRE(result.outcome == Outcome::kOk);
  // In ns: op0 0-10, swap-out 10-1010, op1 1010-1015, swap-in 1015-2015, op2 2015-2025.
  CHECK(result.totals.makespan == 2025_ns);
  CHECK(result.totals.stall.d2h == 1000_ns);
  CHECK(result.totals.stall.h2d == 1000_ns);
  CHECK(result.totals.footprint == 1000_B);
  CHECK(simulate(trace, under("lru-swap", 1800_B)).totals.makespan == 25_ns);
  CHECK(simulate(trace, under("lru-swap", 999_B)).outcome == Outcome::kInfeasible);
}

TEST_CASE("a run ends when its waits for copies exceed the limit of overhead") {
  // b gets a's place: op1 waits from 10 to 110 ns and op2 from 120 to 220 ns. Without waits the step takes 30 ns.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  const Trace trace = build.finish();
  RunSpec spec = under("lru-swap", 100_B);
  spec.overhead_limit = 1 + 200.0 / 30;
  CHECK(simulate(trace, spec).outcome == Outcome::kOk);
  spec.overhead_limit = 1 + 199.0 / 30;
  const Result result = simulate(trace, spec);
  CHECK(result.outcome == Outcome::kTimeLimit);
  CHECK(result.message ==
        "recomputation and stalls take 200 ns beside the step's 30 ns, more than the limit allows, before op 2 of 3");
}

TEST_CASE("freed inputs of dropped content are recomputed with it, and dropped again afterwards") {
  // op0: a | op1: b = f(a), free a | op2: c | op3 reads b and c.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 1_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 20_ns}, {{a, Access::kRead}, {b, Access::kWrite}});
  build.free(a);
  const BufferId c = build.alloc({.size = 100_B});
  build.run({.duration = 300_ns}, {{c, Access::kWrite}});
  build.run({.duration = 4000_ns}, {{b, Access::kRead}, {c, Access::kRead}});
  const Trace trace = build.finish();
  const Result result = scripted(trace, {act(Verb::kDrop, 2, 1)});
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(runs(result.realised) == std::vector<std::size_t>{0, 1, 2, 0, 1, 3});
  CHECK(result.totals.recompute == 21_ns);
  CHECK(result.totals.recompute_count == 2);
  CHECK(result.totals.makespan == 4321_ns + 21_ns);
  CHECK(result.totals.peak == 300_B);  // a, b and c while b is recomputed
  const auto freed = std::count_if(result.realised.actions.begin(), result.realised.actions.end(),
                                   [](const Action& x) { return x.verb == Verb::kFree && x.subject == 0; });
  CHECK(freed == 2);  // once by the program, and once after it was recomputed
}

TEST_CASE("content that needs a parameter's old value is recomputed before the parameter is updated") {
  // y = f(p) is dropped; the optimizer updates p in place; then y is read.
  TraceBuilder build;
  const BufferId p = build.existing({.size = 10_B});
  const BufferId y = build.alloc({.size = 10_B});
  build.run({.duration = 7_ns}, {{p, Access::kRead}, {y, Access::kWrite}});
  build.run({.duration = 1_ns}, {});
  build.run({.duration = 1_ns}, {{p, Access::kReadWrite}});
  build.run({.duration = 1_ns}, {{y, Access::kRead}});
  build.free(y);
  const Trace trace = build.finish();
  const Result result = scripted(trace, {act(Verb::kDrop, 1, 1)});
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(runs(result.realised) == std::vector<std::size_t>{0, 1, 0, 2, 3});
  // After the update, y cannot be recomputed, so dropping it then is refused. Dropping p is always refused.
  CHECK_THROWS_WITH(scripted(trace, {act(Verb::kDrop, 3, 1)}),
                    "drop version 1 before op 3: it could not be recomputed and is not on the host");
  CHECK_THROWS_WITH(scripted(trace, {act(Verb::kDrop, 1, 0)}),
                    "drop version 0 before op 1: it could not be recomputed and is not on the host");
}

TEST_CASE("content that the program no longer reads may be dropped for good before it is freed") {
  // y = f(p) and z = f(y); p is updated; z is dropped, then y after its last use. z can only be recomputed from y.
  TraceBuilder build;
  const BufferId p = build.existing({.size = 10_B});
  const BufferId y = build.alloc({.size = 10_B});
  build.run({.duration = 7_ns}, {{p, Access::kRead}, {y, Access::kWrite}});
  build.run({.duration = 1_ns}, {{p, Access::kReadWrite}});
  const BufferId z = build.alloc({.size = 10_B});
  build.run({.duration = 5_ns}, {{y, Access::kRead}, {z, Access::kWrite}});
  build.run({.duration = 1_ns}, {});
  build.run({.duration = 1_ns}, {});
  build.run({.duration = 1_ns}, {{z, Access::kRead}});
  build.free(y);
  build.free(z);
  const Trace trace = build.finish();
  const std::size_t y_made = trace.made(OpId{0})[0].index(), z_made = trace.made(OpId{2})[0].index();
  // The last reader of y is op 2. A version that outlives the step is never dropped for good.
  CHECK_THROWS_WITH(
      scripted(trace, {act(Verb::kDrop, 2, y_made)}),
      fmt::format("drop version {} before op 2: it could not be recomputed and is not on the host", y_made));
  CHECK_THROWS_WITH(scripted(trace, {act(Verb::kDrop, 5, trace.made(OpId{1})[0].index())}),
                    fmt::format("drop version {} before op 5: it could not be recomputed and is not on the host",
                                trace.made(OpId{1})[0].index()));
  const Result result = scripted(trace, {act(Verb::kDrop, 3, z_made), act(Verb::kDrop, 4, y_made)});
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(runs(result.realised) == std::vector<std::size_t>{0, 1, 2, 3, 2, 4, 5});  // z is recomputed before y is dropped
  // Of versions dropped before the same op, the one that is lost for good is dropped last.
  const Result together = scripted(trace, {act(Verb::kDrop, 4, y_made), act(Verb::kDrop, 4, z_made)});
  REQUIRE(together.outcome == Outcome::kOk);
  CHECK(runs(together.realised) == std::vector<std::size_t>{0, 1, 2, 3, 2, 4, 5});
  CHECK(result.totals.eviction_count == 2);
}

TEST_CASE("an old version is recomputed elsewhere while the buffer holds a newer one") {
  // op0 writes a: version 0 | op1: y = f(a), version 1 | op2 updates a in place: version 2 | op3 reads y and a.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 1_ns}, {{a, Access::kWrite}});
  const BufferId y = build.alloc({.size = 50_B});
  build.run({.duration = 1_ns}, {{a, Access::kRead}, {y, Access::kWrite}});
  build.run({.duration = 1_ns}, {{a, Access::kReadWrite}});
  build.run({.duration = 1_ns}, {{y, Access::kRead}, {a, Access::kRead}});
  const Trace trace = build.finish();
  const Result result = scripted(trace, {act(Verb::kDrop, 3, 1)});
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(runs(result.realised) == std::vector<std::size_t>{0, 1, 2, 0, 1, 3});
  CHECK(result.totals.peak == 250_B);  // the old and the new version of a, and y
  // If the new version is dropped too, op0 is recomputed once: op1 reads its result, then op2 updates it to the new
  // version.
  const Result both = scripted(trace, {act(Verb::kDrop, 3, 1), act(Verb::kDrop, 3, 2)});
  REQUIRE(both.outcome == Outcome::kOk);
  CHECK(runs(both.realised) == std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 3});
}

TEST_CASE("when an op runs again, an output that is still resident gets a scratch place") {
  // op0 makes a and b; only a is dropped.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 30_B});
  const BufferId b = build.alloc({.size = 5_B});
  build.run({.duration = 1_ns}, {{a, Access::kWrite}, {b, Access::kWrite}});
  build.run({.duration = 1_ns}, {});
  build.run({.duration = 1_ns}, {{a, Access::kRead}, {b, Access::kRead}});
  const Trace trace = build.finish();
  const Result result = scripted(trace, {act(Verb::kDrop, 1, 0)});
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(result.totals.peak == 40_B);
  CHECK(std::count_if(result.realised.actions.begin(), result.realised.actions.end(),
                      [](const Action& x) { return x.verb == Verb::kScratch && x.subject == 1; }) == 1);
}

TEST_CASE("streams run concurrently and wait only for content and recorded events") {
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId a = build.alloc({.size = 8_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  build.run({.stream = side, .duration = 30_ns}, {});                   // 0-30
  build.run({.stream = side, .duration = 5_ns}, {{a, Access::kRead}});  // 100-105
  build.run({.duration = 10_ns}, {});                                   // 100-110
  build.run({.stream = side, .duration = 1_ns}, {});                    // 110-111: waits for op3
  build.order(OpId{3}, OpId{4});
  const Trace trace = build.finish();
  const Result result = simulate(trace, under("none"));
  CHECK(result.totals.makespan == 111_ns);
  CHECK(result.baseline == 111_ns);
}

TEST_CASE("a place freed on one stream is written on another only after its last use") {
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId a = build.alloc({.size = 8_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  build.free(a);
  const BufferId b = build.alloc({.size = 8_B, .stream = side});
  build.run({.stream = side, .duration = 5_ns}, {{b, Access::kWrite}});
  build.free(b);
  const Trace trace = build.finish();
  CHECK(simulate(trace, under("none", 8_B)).totals.makespan == 105_ns);  // one place: the streams take turns
  const Plan apart{{act(Verb::kAlloc, 0, 0, 0, 8), act(Verb::kRun, 0, 0), act(Verb::kFree, 1, 0),
                    act(Verb::kAlloc, 1, 1, 8, 8), act(Verb::kRun, 1, 1), act(Verb::kFree, 1, 1)}};
  CHECK(replay(trace, under("none"), apart).makespan == 100_ns);  // two places: the streams run concurrently
}

TEST_CASE("in the steady state a buffer that is on the host between two steps is copied once in a step, not twice") {
  // Only op0 reads w (100 B); x needs the place of w. A step that runs alone must bring w back at its end.
  TraceBuilder build;
  const BufferId w = build.existing({.size = 100_B});
  build.run({.duration = 10_ns}, {{w, Access::kRead}});
  const BufferId x = build.alloc({.size = 100_B});
  build.run({.duration = 1000_ns}, {{x, Access::kWrite}});
  build.free(x);
  const Trace trace = build.finish();
  // In ns: op0 0-10, swap-out 10-110, op1 110-1110, swap-in 1110-1210.
  CHECK(simulate(trace, under("lru-swap", 100_B)).totals.makespan == 1210_ns);
  RunSpec steady = under("lru-swap", 100_B);
  steady.iterations = 3;
  const Result result = simulate(trace, steady, true);
  REQUIRE(result.outcome == Outcome::kOk);
  // The swap-in begins when op0 of the next step needs w. In ns: swap-in 0-100, op0 100-110, op1 110-1110. w has a copy
  // on the host already.
  CHECK(result.totals.makespan == 1110_ns);
  CHECK(result.totals.swap_in == 100_B);
  CHECK(replay(trace, steady, result.realised) == result.totals);
}

TEST_CASE("versions from before the step get a place when the step begins, and later only a swap-in gives them one") {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 1000_B});
  build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{weight}});
  const Trace trace = build.finish();
  const Action start = act(Verb::kAlloc, 0, 0, 0, 1000), out{Verb::kSwapOut, {}, 0}, drop{Verb::kDrop, {}, 0},
               first = act(Verb::kRun, 0, 0), late = act(Verb::kAlloc, 1, 0, 0, 1000),
               in = act(Verb::kSwapIn, 1, 0, 0, 1000), second = act(Verb::kRun, 1, 1), next = act(Verb::kNext, 0, 1);
  RunSpec spec = under("none", 1000_B);
  CHECK(replay(trace, spec, Plan{{start, first, second}}).makespan == 20_ns);
  CHECK(replay(trace, spec, Plan{{first, in, second}}).makespan == 10_ns + 1000_ns + 10_ns);
  CHECK_THROWS_WITH(replay(trace, spec, Plan{{first, late, second}}),
                    "alloc version 0 before op 1: only a copy from the host brings back content from before the step");
  spec.iterations = 2;
  CHECK_THROWS_WITH(replay(trace, spec, Plan{{start, first, second, out, drop, next, start}}),
                    "alloc version 0 before op 0: only a copy from the host brings back content from before the step");
}

TEST_CASE("a policy cannot run an op while it is asked to make room for a place, since the op would need places") {
  /// Wants op 0 to run whenever it is asked.
  class Rerun final : public Policy {
   public:
    explicit Rerun(bool anticipates) : anticipates_{anticipates} {}
    bool anticipates() const override { return anticipates_; }
    void before_place(const View&, const Request&, std::vector<Action>& out) override { run(out); }
    void make_room(const View&, const Request&, std::vector<Action>& out) override { run(out); }

   private:
    static void run(std::vector<Action>& out) { out.push_back(act(Verb::kRun, 0, 0)); }
    bool anticipates_;
  };
  for (const bool anticipates : {false, true}) {
    std::vector<std::unique_ptr<Policy>> policies;
    policies.push_back(std::make_unique<Rerun>(anticipates));
    CHECK_THROWS_WITH(simulate_under(busy_between(10_ns), under("none", 999_B), std::move(policies), true),
                      "run op 0 before op 0: a policy cannot decide this while a place is looked for");
  }
}

}  // namespace tidepool::engine_test
