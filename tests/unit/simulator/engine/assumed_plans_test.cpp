// Plans are checked under the assumptions under which they were made.
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "traces/builder.hpp"

namespace tidepool::assumed_plans_test {

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

RunSpec assuming(const std::string& name) { return {.assume = Assumptions::find(name)}; }

}  // namespace

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

}  // namespace tidepool::assumed_plans_test
