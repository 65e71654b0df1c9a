#include "traces/step/stream_ends.hpp"

#include "simulator/instance.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::stream_ends_test {

namespace {

/// x (position 0) is written on the compute stream and read by a copy on the side stream. The host frees x (1). Each
/// call of next() then allocates a buffer for a kernel of a stream and frees it at once: a (2), b (4), c (6).
struct SideCopy {
  TraceBuilder build{{"compute", "side"}};
  OpId copy;

  SideCopy() {
    const BufferId x = build.alloc({.size = 1_KiB});
    op(0, x, Access::kWrite);
    copy = op(1, x, Access::kRead);
    build.free(x);
  }
  OpId op(std::size_t stream, BufferId buffer, Access access) {
    build.run({.stream = StreamId{stream}}, {{.buffer = buffer, .access = access}});
    return build.last_op();
  }
  OpId next(std::size_t stream = 0) {
    const BufferId buffer = build.alloc({.size = 1_KiB});
    const OpId id = op(stream, buffer, Access::kWrite);
    build.free(buffer);
    return id;
  }
  std::vector<std::int64_t> ends() { return stream_ends(build.finish(), 0); }
};

}  // namespace

TEST_CASE("a buffer that only one stream uses ends where the host frees it") {
  TraceBuilder build;
  const BufferId x = build.alloc({.size = 1_KiB});
  build.run({}, {{.buffer = x, .access = Access::kWrite}});
  build.free(x);
  const BufferId outlives = build.alloc({.size = 1_KiB});
  build.run({}, {{.buffer = outlives, .access = Access::kWrite}});
  CHECK(stream_ends(build.finish(), 0) == std::vector<std::int64_t>{1, -1});
}

TEST_CASE("a buffer that another stream reads ends where the later users are ordered after that read") {
  SideCopy trace;
  trace.next();
  const OpId waits = trace.next();
  trace.next();
  trace.build.order(trace.copy, waits);
  // The wait follows the allocation of b and is at position 5. So a and b must not have x's place, but c may.
  CHECK(trace.ends() == std::vector<std::int64_t>{5, 3, 5, 7});
}

TEST_CASE("a buffer that another stream reads ends with the last later buffer if no stream waits for the read") {
  SideCopy trace;
  trace.next();
  trace.next();
  trace.next();
  CHECK(trace.ends() == std::vector<std::int64_t>{7, 3, 5, 7});
}

TEST_CASE("a stream that uses no later buffer need not wait") {
  SideCopy trace;
  trace.next(1);  // a kernel of the side stream: it follows that stream's copy, which follows the write of x
  CHECK(trace.ends() == std::vector<std::int64_t>{1, 3});
}

TEST_CASE("a wait for an op is also a wait for everything that the op's stream had waited for") {
  TraceBuilder build{{"compute", "copy", "third"}};
  const auto run = [&](std::size_t stream, BufferId buffer, Access access) {
    build.run({.stream = StreamId{stream}}, {{.buffer = buffer, .access = access}});
    return build.last_op();
  };
  const BufferId x = build.alloc({.size = 1_KiB});       // 0
  const BufferId signal = build.alloc({.size = 1_KiB});  // 1
  const OpId reads = run(2, x, Access::kRead);
  build.free(x);                                       // 2
  const OpId middle = run(1, signal, Access::kWrite);  // ordered after the read of the third stream
  build.order(reads, middle);
  const BufferId early = build.alloc({.size = 1_KiB});  // 3
  run(0, early, Access::kWrite);
  run(0, signal, Access::kRead);                       // reads the output of `middle`
  const BufferId late = build.alloc({.size = 1_KiB});  // 4
  run(0, late, Access::kWrite);
  CHECK(stream_ends(build.finish(), 0) == std::vector<std::int64_t>{4, -1, -1, -1});
}

TEST_CASE("planners use the ends by streams") {
  SideCopy trace;
  trace.next();
  const Instance instance = lifetimes_of(trace.build.finish(), 0, 512_B);
  REQUIRE(instance.items.size() == 2);
  CHECK(instance.lives(instance.items[0])[0] == Interval{0, 3});
  CHECK(load_of(instance) == 2_KiB);
}

TEST_CASE("a buffer from before the step that is freed first has a lifetime before those of the step's buffers") {
  TraceBuilder build;
  const BufferId old = build.existing({.size = 1_KiB});
  build.existing({.size = 512_B});
  build.free(old);  // like gradients of the step before, which zero_grad() frees
  const BufferId next = build.alloc({.size = 1_KiB});
  build.run({.duration = 1_us}, {{next, Access::kWrite}});
  const Instance instance = lifetimes_of(build.finish(), 0, 512_B);
  CHECK(instance.lives(instance.items[0])[0] == Interval{0, 1});
  CHECK(instance.lives(instance.items[2])[0].lower == 2);
  CHECK_NOTHROW(check(instance));
  CHECK(load_of(instance) == 1536_B);
}

}  // namespace tidepool::stream_ends_test
