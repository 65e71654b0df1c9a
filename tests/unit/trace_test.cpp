#include "tests/catch.hpp"
#include "traces/builder.hpp"
#include "traces/error.hpp"

using namespace tidepool;

TEST_CASE("an in-place write makes a new version of the same buffer and costs no memory") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 12_MiB});
  const VersionId first = build.run({.duration = 1_us}, {{a, Access::kWrite}})[0];
  const VersionId second = build.run({.duration = 1_us}, {{a, Access::kReadWrite}})[0];
  build.free(a);
  const Trace trace = build.finish();
  CHECK(trace.version(second).parent == first);
  CHECK(trace.version(second).kind == VersionKind::kUpdate);
  CHECK(trace.version(second).buffer == a);
  CHECK(trace.readers(first).size() == 1);
  CHECK(trace.ideal_peak() == 12_MiB);
}

TEST_CASE("the ideal peak counts what is live at once, and views for nothing") {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 100_B});
  const BufferId a = build.alloc({.size = 10_B});
  build.run({}, {{weight, Access::kRead}, {a, Access::kWrite}});
  const VersionId view = build.run({}, {{a, Access::kView}})[0];
  const BufferId b = build.alloc({.size = 7_B});
  build.run({}, {{a, Access::kRead, Evidence::kSchema, view}, {b, Access::kWrite}});
  build.free(a);
  const BufferId c = build.alloc({.size = 9_B});
  build.run({}, {{b, Access::kRead}, {c, Access::kWrite}});
  const Trace trace = build.finish();
  CHECK(trace.ideal_peak() == 117_B);
  CHECK(trace.root(view) == trace.first_version(a));
  CHECK(trace.viewers(trace.first_version(a)).size() == 1);
  CHECK(trace.outputs().size() == 3);  // weight, b and c are still allocated
}

TEST_CASE("what could not have happened is refused with the records that say so") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1_B});
  build.free(a);
  CHECK_THROWS_WITH(build.free(a), "free of buffer 0, which is not allocated");
  CHECK_THROWS_WITH(build.run({}, {{a, Access::kRead}}), "op 0 uses buffer 0, which is not allocated");
  CHECK_THROWS_WITH(build.alloc({.size = Bytes{-5}}), "buffer 1: size is -5; expected at least 0");

  TraceData data;
  data.strings = {""}, data.streams = {"0"};
  data.buffers = {{.size = 1_B, .name = StringId{0}, .stream = StreamId{0}}};
  data.versions = {{.buffer = BufferId{0}, .kind = VersionKind::kInitial, .producer = {}, .parent = {}, .root = VersionId{0}}};
  data.steps = {{StepKind::kAlloc, 0}, {StepKind::kFree, 0}, {StepKind::kFree, 0}};
  CHECK_THROWS_WITH(Trace{data}, "step 2: free of buffer 0, which is not allocated");
  data.steps = {{StepKind::kAlloc, 0}, {StepKind::kFree, 3}};
  CHECK_THROWS_WITH(Trace{data}, "step 1: unknown buffer 3; the trace has 1");
  data.steps = {{StepKind::kAlloc, 0}, {StepKind::kFree, 0}};
  CHECK_NOTHROW(Trace{data});
  data.versions[0].parent = VersionId{0};
  CHECK_THROWS_WITH(Trace{data}, "version 0: its parent 0 does not come before it");
}
