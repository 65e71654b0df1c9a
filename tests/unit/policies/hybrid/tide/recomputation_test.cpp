// Costs of dropping and recomputing content, including the ops that must run again first, in closed form.
#include "policies/hybrid/tide/recomputation.hpp"

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::recomputation_test {

namespace {

/// Ops: 0 makes a from x (10 ns) | 1 makes b from a (20 ns) | 2 makes c from b (30 ns), b is freed | 3 and 4 read
/// nothing | 5 reads c | 6 reads a | 7 reads x. Sizes: x 1 B, a 10 B, b 100 B, c 1000 B.
Trace chain() {
  TraceBuilder build;
  const BufferId x = build.existing({.size = 1_B});
  const BufferId a = build.alloc({.size = 10_B});
  build.run({.duration = 10_ns}, {{x, Access::kRead}, {a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_B});
  build.run({.duration = 20_ns}, {{a, Access::kRead}, {b, Access::kWrite}});
  const BufferId c = build.alloc({.size = 1000_B});
  build.run({.duration = 30_ns}, {{b, Access::kRead}, {c, Access::kWrite}});
  build.free(b);
  build.run({.duration = 1_ns}, {});
  build.run({.duration = 1_ns}, {});
  build.run({.duration = 1_ns}, {{c, Access::kRead}});
  build.free(c);
  build.run({.duration = 1_ns}, {{a, Access::kRead}});
  build.free(a);
  build.run({.duration = 1_ns}, {{x, Access::kReadWrite}});
  return build.finish();
}

/// The gap of the content that an op makes.
std::uint32_t gap_of(const Trace& trace, const std::vector<Gap>& gaps, std::size_t op) {
  for (std::uint32_t i = 0; i < gaps.size(); ++i)
    if (gaps[i].out == trace.made(OpId{op})[0] && !gaps[i].crosses) return i;
  FAIL("no gap of what op " << op << " makes");
  return 0;
}

}  // namespace

TEST_CASE("dropped content is recomputed as soon as a recomputation reads it, and stays") {
  const Trace trace = chain();
  const std::vector<Gap> gaps = find_gaps(trace, 1_B);
  Recomputation recomputation{trace, gaps, {}};
  const std::uint32_t a = gap_of(trace, gaps, 0), c = gap_of(trace, gaps, 2);
  const auto follow = [&](How of_a, How of_c) {
    Treatments treatments(gaps.size());
    treatments[a] = of_a;
    treatments[c] = of_c;
    CHECK(recomputation.follow(treatments));
  };
  // If only a is dropped, it is recomputed for op 6, which reads it.
  follow(How::kDropped, How::kKept);
  CHECK(recomputation.due(a) == 6);
  CHECK(recomputation.total() == 10_ns);
  CHECK(recomputation.time()[6] == 10_ns);
  CHECK(recomputation.held()[6] == 0_B);
  // If both are dropped, op 5 needs c, c needs b, and b needs a. b has been freed, and is resident only meanwhile.
  follow(How::kDropped, How::kDropped);
  CHECK(recomputation.due(c) == 5);
  CHECK(recomputation.due(a) == 5);
  CHECK(recomputation.total() == 60_ns);
  CHECK(recomputation.time()[5] == 60_ns);
  CHECK(recomputation.held()[5] == 100_B);
  // If a is on the host instead, it must be back for op 5, not only for op 6.
  follow(How::kCopied, How::kDropped);
  CHECK(recomputation.due(a) == 5);
  CHECK(recomputation.total() == 50_ns);
  // If only a is on the host, nothing is recomputed.
  follow(How::kCopied, How::kKept);
  CHECK(recomputation.due(a) == 6);
  CHECK(recomputation.total() == 0_ns);
}

TEST_CASE("an op that is recomputed in place takes over its temporary input's memory") {
  // Ops: 0 makes a from x | 1 changes a in place | 2 makes c from a, a is freed | 3 to 5 read nothing | 6 reads c.
  TraceBuilder build;
  const BufferId x = build.existing({.size = 1_B});
  const BufferId a = build.alloc({.size = 100_B});
  build.run({.duration = 10_ns}, {{x, Access::kRead}, {a, Access::kWrite}});
  build.run({.duration = 10_ns}, {{a, Access::kReadWrite}});
  const BufferId c = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kRead}, {c, Access::kWrite}});
  build.free(a);
  for (int i = 0; i < 3; ++i) build.run({.duration = 10_ns}, {});
  build.run({.duration = 10_ns}, {{c, Access::kRead}});
  build.free(c);
  build.run({.duration = 10_ns}, {{x, Access::kReadWrite}});
  const Trace trace = build.finish();
  const std::vector<Gap> gaps = find_gaps(trace, 1_B);
  Recomputation recomputation{trace, gaps, {}};
  Treatments treatments(gaps.size());
  treatments[gap_of(trace, gaps, 2)] = How::kDropped;
  CHECK(recomputation.follow(treatments));
  CHECK(recomputation.total() == 30_ns);
  CHECK(recomputation.held()[6] == 100_B);  // a once, not before and after the change
}

}  // namespace tidepool::recomputation_test
