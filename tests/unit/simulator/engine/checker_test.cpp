// Plans that cannot be carried out are refused, also under the assumptions under which they were made.
#include <utility>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/plan_writer.hpp"
#include "traces/builder.hpp"

namespace tidepool::checker_test {

namespace {

/// op0, a source, writes a | op1 reads a, writes b | op2 views b | op3 reads the view, writes c. c is the output.
struct ReadThroughView {
  VersionId a, b, view, c;
  Trace trace = make();

  Trace make() {
    TraceBuilder build;
    const BufferId first = build.alloc({.size = 512_B}), second = build.alloc({.size = 512_B});
    const BufferId third = build.alloc({.size = 512_B});
    a = build.run({.kind = OpKind::kSource, .duration = 1_ms}, {{first, Access::kWrite}})[0];
    b = build.run({.duration = 1_ms}, {{first}, {second, Access::kWrite}})[1];
    view = build.run({.duration = 1_ms}, {{second, Access::kView}})[0];
    c = build.run({.duration = 1_ms}, {{second, Access::kRead, Evidence::kSchema, view}, {third, Access::kWrite}})[1];
    build.free(first), build.free(second);
    return build.finish();
  }

  /// b is dropped after op2 and recomputed for op3.
  /// @param with_view       whether op2 makes the view again
  /// @param without_source  whether a is dropped before op3
  Plan recomputed(bool with_view, bool without_source) const {
    tests::PlanWriter plan{trace};
    plan.alloc(a, 0_B).run(OpId{0}).alloc(b, 512_B).run(OpId{1}).run(OpId{2}).drop(b).alloc(b, 512_B).run(OpId{1});
    if (with_view) plan.run(OpId{2});
    if (without_source) plan.drop(a);
    return plan.alloc(c, 1024_B).run(OpId{3}).plan();
  }
};

/// op0 writes a (1000 B) | op1 | op2 reads a. Each takes 10 ns.
Trace write_wait_read() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{a, Access::kRead}});
  build.free(a);
  return build.finish();
}

/// A run on links of 1 GB/s without latency: 1 B takes 1 ns.
RunSpec within(Bytes capacity) {
  return {.pool = "best-fit(alignment=1B)",
          .policy = "none",
          .capacity = capacity,
          .machine = tests::byte_per_nano(),
          .overhead_limit = {}};
}

Action act(Verb verb, std::size_t before, std::size_t subject, std::int64_t offset = 0, std::int64_t size = 0) {
  return {verb, OpId{before}, static_cast<std::uint32_t>(subject), Bytes{offset}, Bytes{size}};
}

RunSpec assuming(const std::string& name) { return {.assume = Assumptions::find(name)}; }

}  // namespace

TEST_CASE("a plan that cannot be carried out is refused with the action and the reason") {
  const Trace trace = write_wait_read();
  const auto refusal = [&](std::vector<Action> actions) {
    CHECK_THROWS_AS(replay(trace, within(2000_B), Plan{actions}), PlanError);
    try {
      replay(trace, within(2000_B), Plan{std::move(actions)});
    } catch (const PlanError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  const Action place = act(Verb::kAlloc, 0, 0, 0, 1000), first = act(Verb::kRun, 0, 0), second = act(Verb::kRun, 1, 1);
  CHECK(refusal({first}) == "run op 0 before op 0: its output, version 0 of buffer 0, has no place");
  CHECK(refusal({act(Verb::kAlloc, 0, 0, 0, 999)}) == "alloc version 0 before op 0: 999 B do not hold its 1000 B");
  CHECK(refusal({act(Verb::kAlloc, 0, 0, 1001, 1000)}) ==
        "alloc version 0 before op 0: it would end at 1.954 KiB, beyond the capacity");
  CHECK(refusal({place, place}) == "alloc version 0 before op 0: it has a place already");
  CHECK(refusal({place, first, act(Verb::kDrop, 1, 0), second, act(Verb::kRun, 2, 2)}) ==
        "run op 2 before op 2: its input, version 0 of buffer 0, is not there");
  CHECK(refusal({place, first, act(Verb::kDrop, 1, 0), act(Verb::kSwapIn, 1, 0, 0, 1000)}) ==
        "swap in version 0 before op 1: it is not on the host");
  CHECK(refusal({place, second}) == "run op 1 before op 1: op 0 has not run yet");
  CHECK(refusal({place, first, second}) == "the plan ends before op 2");
  CHECK(refusal({place, first, act(Verb::kScratch, 1, 0, 500, 1000)}) ==
        "scratch version 0 before op 1: it would overlap version 0");
}

TEST_CASE("a step must not end with an empty place for an output, even if the host has the content") {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 1000_B});
  build.run({.duration = 10_ns}, {{weight, Access::kWrite}});
  const Trace trace = build.finish();
  const OpId none;
  const Action start = act(Verb::kAlloc, 0, 1, 0, 1000), run = act(Verb::kRun, 0, 0), out{Verb::kSwapOut, none, 1},
               drop{Verb::kDrop, none, 1}, empty{Verb::kAlloc, none, 1, 0_B, 1000_B};
  const RunSpec spec = within(1000_B);
  CHECK(replay(trace, spec, Plan{{start, run, out, drop}}).makespan == 10_ns + 1000_ns);
  CHECK_THROWS_WITH(replay(trace, spec, Plan{{start, run, out, drop, empty}}),
                    "the step ends with an empty place for version 1 of buffer 0, one of its outputs");
}

TEST_CASE("if views are replayed, a view whose base was recomputed must be made again") {
  const ReadThroughView step;
  CHECK_THROWS_WITH(replay(step.trace, assuming("simrd"), step.recomputed(false, false)),
                    "run op 3 before op 3: its input, the view 2 of buffer 1, was not made again");
  CHECK_NOTHROW(replay(step.trace, assuming("simrd"), step.recomputed(true, false)));
  CHECK_NOTHROW(replay(step.trace, assuming(""), step.recomputed(false, false)));
}

TEST_CASE("if sources are pinned, their outputs stay") {
  const ReadThroughView step;
  CHECK_THROWS_WITH(replay(step.trace, assuming("simrd"), step.recomputed(true, true)),
                    "drop version 0 before op 3: it stays under the assumptions of simrd");
  CHECK_NOTHROW(replay(step.trace, assuming(""), step.recomputed(true, true)));
}

}  // namespace tidepool::checker_test
