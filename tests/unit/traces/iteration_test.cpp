#include "traces/iteration.hpp"

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/builder.hpp"

namespace tidepool::iteration_test {

using tidepool::tests::program;

namespace {

/// Two iterations. Op "in" makes a buffer that op "out" of the next iteration reads; then the buffer ends.
Trace two_iterations() {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 8_B});
  BufferId kept = build.existing({.size = 2_B});
  for (const char* name : {"0", "1"}) {
    build.mark(MarkKind::kIteration, name);
    const BufferId made = build.alloc({.size = 4_B});
    build.run({.name = build.text("in"), .start = Nanos{name[0] == '0' ? 5 : 35}, .duration = 10_ns},
              {{weight, Access::kReadWrite}, {made, Access::kWrite}});
    const VersionId view = build.run({.name = build.text("view")}, {{weight, Access::kView}}).front();
    build.run({.name = build.text("out"), .duration = 20_ns},
              {{kept, Access::kRead}, {weight, Access::kRead, Evidence::kSchema, view}});
    build.free(kept);
    kept = made;
  }
  return build.finish();
}

}  // namespace

TEST_CASE("an iteration is cut out with the buffers that are live at both of its ends") {
  const Trace cut = one_iteration(two_iterations(), 1);
  CHECK(program(cut) == std::vector<std::string>{"alloc 2", "run in", "run view", "run out", "free 1"});
  CHECK(cut.buffers()[0].born_before);
  CHECK(cut.buffers()[0].outlives);
  CHECK(cut.buffers()[1].born_before);  // made in the iteration before
  CHECK_FALSE(cut.buffers()[1].outlives);
  CHECK_FALSE(cut.buffers()[2].born_before);
  CHECK(cut.buffers()[2].outlives);  // read in the next one
  CHECK(cut.op(OpId{0}).start == 0_ns);
  CHECK(cut.ideal_peak() == 8_B + 4_B + 4_B);
  CHECK(cut.outputs().size() == 2);
}

TEST_CASE("in a cut-out iteration, an op still uses the version that an earlier op made") {
  const Trace cut = one_iteration(two_iterations(), 0);
  const std::span uses = cut.uses(OpId{2});
  CHECK(cut.version(uses[1].in).kind == VersionKind::kView);
  CHECK(cut.version(cut.root(uses[1].in)).producer == OpId{0});
}

TEST_CASE("an iteration that a trace does not have is refused") {
  CHECK_THROWS_WITH(one_iteration(two_iterations(), 2), "iteration 2: the trace has 2, counted from 0");
  TraceBuilder build;
  build.run({}, {});
  CHECK_THROWS_WITH(one_iteration(build.finish(), 0), "iteration 0: the trace marks no iterations");
}

TEST_CASE("times of an iteration count from its first launch or start") {
  TraceBuilder build;
  build.mark(MarkKind::kIteration, "0");
  build.run({.start = 5_ns, .launch = 0_ns}, {});
  build.mark(MarkKind::kIteration, "1");
  build.run({.start = 40_ns, .launch = 30_ns}, {});
  build.run({.start = Nanos{-1}, .launch = 25_ns}, {});  // launched by another thread
  build.run({.start = 50_ns}, {});
  const Trace cut = one_iteration(build.finish(), 1);
  CHECK(cut.op(OpId{0}).launch == 5_ns);
  CHECK(cut.op(OpId{0}).start == 15_ns);
  CHECK(cut.op(OpId{1}).launch == 0_ns);
  CHECK(cut.op(OpId{1}).start == Nanos{-1});
  CHECK(cut.op(OpId{2}).start == 25_ns);
  CHECK(cut.op(OpId{2}).launch == Nanos{-1});
}

TEST_CASE("an iteration keeps the lines of the user's code") {
  TraceBuilder build;
  build.mark(MarkKind::kIteration, "0");
  build.run({}, {});
  build.mark(MarkKind::kIteration, "1");
  const BufferId a = build.alloc({.size = 8_B, .line = build.text("train.py:7")});
  build.run({.line = build.text("model.py:88")}, {{a, Access::kWrite}});
  const Trace cut = one_iteration(build.finish(), 1);
  CHECK(cut.text(cut.buffer(BufferId{0}).line) == "train.py:7");
  CHECK(cut.text(cut.op(OpId{0}).line) == "model.py:88");
}

TEST_CASE("complete iterations are cut out together, without the ops after them") {
  TraceBuilder build;
  for (const char* name : {"0", "1", "2", "after 2"}) {
    build.mark(MarkKind::kIteration, name);
    build.run({.name = build.text(name)}, {});
  }
  const Trace trace = build.finish();
  CHECK(complete_iterations(trace) == 3);
  CHECK(program(iterations(trace, 1, 2)) == std::vector<std::string>{"run 1", "run 2"});
  CHECK(program(iterations(trace, 0, 1)) == std::vector<std::string>{"run 0"});
  CHECK_THROWS_WITH(iterations(trace, 2, 2), "2 iterations from number 2: the trace has 3, numbered from 0");
}

}  // namespace tidepool::iteration_test
