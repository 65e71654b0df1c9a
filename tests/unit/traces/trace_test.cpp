#include "tests/catch.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"

namespace tidepool::trace_test {

TEST_CASE("an in-place write makes a new version of the same buffer and takes no memory") {
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

TEST_CASE("the ideal peak counts buffers that are live together, and does not count views") {
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

TEST_CASE("impossible events are refused, and the message names their records") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1_B});
  build.free(a);
  CHECK_THROWS_WITH(build.free(a), "free of buffer 0, which is not allocated");
  CHECK_THROWS_WITH(build.run({}, {{a, Access::kRead}}), "op 0 uses buffer 0, which is not allocated");
  CHECK_THROWS_WITH(build.alloc({.size = Bytes{-5}}), "buffer 1: size is -5; expected at least 0");

  TraceData data;
  data.strings = {""}, data.streams = {"0"};
  data.buffers = {{.size = 1_B, .name = StringId{0}, .stream = StreamId{0}}};
  data.versions = {
      {.buffer = BufferId{0}, .kind = VersionKind::kInitial, .producer = {}, .parent = {}, .root = VersionId{0}}};
  data.events = {{EventKind::kAlloc, 0}, {EventKind::kFree, 0}, {EventKind::kFree, 0}};
  CHECK_THROWS_WITH(Trace{data}, "step 2: free of buffer 0, which is not allocated");
  data.events = {{EventKind::kAlloc, 0}, {EventKind::kFree, 3}};
  CHECK_THROWS_WITH(Trace{data}, "step 1: unknown buffer 3; the trace has 1");
  data.events = {{EventKind::kAlloc, 0}, {EventKind::kFree, 0}};
  CHECK_NOTHROW(Trace{data});
  data.versions[0].parent = VersionId{0};
  CHECK_THROWS_WITH(Trace{data}, "version 0: its parent 0 does not come before it");
}

TEST_CASE("the properties that a trace guarantees to its readers are checked") {
  TraceBuilder build;
  const BufferId a = build.existing({.size = 1_B});
  build.run({}, {{a, Access::kReadWrite}});
  build.mark(MarkKind::kIteration, "0");
  build.mark(MarkKind::kIteration, "1");
  const TraceData good = build.finish().data();
  const auto refused = [&](auto change, const char* message) {
    TraceData data = good;
    change(data);
    CHECK_THROWS_WITH(Trace{data}, message);
  };
  refused([](TraceData& d) { d.strings[1] = "\xff"; }, "string 1: is not UTF-8");
  refused([](TraceData& d) { d.strings[2] = "0"; }, "string 2: is the same as string 1; expected each once");
  refused([](TraceData& d) { d.streams.emplace_back("0"); }, "stream 1: is the same as stream 0; expected each once");
  refused([](TraceData& d) { d.meta["key"] = "\xff"; }, "meta 'key': is not UTF-8");
  refused([](TraceData& d) { d.buffers[0].address = -2; },
          "buffer 0: address is -2; expected at least 0, or -1 if not recorded");
  refused([](TraceData& d) { d.buffers[0].size = Bytes{std::int64_t{1} << 62} + 1_B; },
          "buffer 0: size is 4611686018427387905; all sizes together exceed 4 EiB");
  refused([](TraceData& d) { d.ops[0].start = Nanos{-2}; },
          "op 0: start is -2; expected 0 to 2305843009213693952, or -1 if not recorded");
  refused([](TraceData& d) { d.ops[0].launch = Nanos{(std::int64_t{1} << 61) + 1}; },
          "op 0: launch is 2305843009213693953; expected 0 to 2305843009213693952, or -1 if not recorded");
  refused([](TraceData& d) { d.ops[0].duration = Nanos{(std::int64_t{1} << 62) + 1}; },
          "op 0: duration is 4611686018427387905; all durations together exceed 146 years");
  refused([](TraceData& d) { d.marks[0].event = 1, d.marks[1].event = 0; }, "mark 1: not sorted by step");
  refused([](TraceData& d) { d.losses.unmatched_frees = -1; }, "losses: unmatched_frees is -1; expected at least 0");
  refused([](TraceData& d) { d.versions[1].kind = VersionKind::kWrite; },
          "op 0 makes version 1 of another kind than its use says");
  refused([](TraceData& d) { d.versions.erase(d.versions.begin()), d.versions[0].parent = {}; },
          "version 0: an update or view needs a parent");
}

TEST_CASE("a version cannot be forgotten before it is made") {
  TraceBuilder build;
  const BufferId a = build.existing({.size = 1_B});
  build.forget(build.run({}, {{a, Access::kReadWrite}})[0]);
  TraceData data = build.finish().data();
  std::swap(data.events[0], data.events[1]);
  CHECK_THROWS_WITH(Trace{data}, "step 0: forgets version 1, which is not made before it");
}

TEST_CASE("a view cannot be read before it is made") {
  TraceBuilder build;
  const BufferId a = build.existing({.size = 1_B});
  build.run({}, {{a, Access::kRead}});
  const VersionId view = build.run({}, {{a, Access::kView}})[0];
  TraceData data = build.finish().data();
  data.uses[0].in = view;
  CHECK_THROWS_WITH(Trace{data}, "op 0 reads view 1, which is not made before it");
}

}  // namespace tidepool::trace_test
