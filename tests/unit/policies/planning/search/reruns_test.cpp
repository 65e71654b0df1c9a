// Costs of dropping and recomputing content, including the ops that must run again first, in closed form.
#include "policies/planning/search/reruns.hpp"

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::reruns_test {

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

TEST_CASE("dropping one version costs its op, and the ops of its freed inputs") {
  const Trace trace = chain();
  const std::vector<Gap> gaps = find_gaps(trace, 1_B);
  const std::vector<Nanos> costs = Reruns{trace, gaps}.costs();
  CHECK(costs[gap_of(trace, gaps, 0)] == 10_ns);
  CHECK(costs[gap_of(trace, gaps, 2)] == 50_ns);  // b must be recomputed too, from a, which is resident
  for (std::size_t i = 0; i < gaps.size(); ++i)
    if (gaps[i].crosses || gaps[i].made == Gap::kBefore) CHECK(costs[i] == Reruns::kImpossible);
}

TEST_CASE("dropped content is recomputed as soon as a rerun reads it, and stays") {
  const Trace trace = chain();
  const std::vector<Gap> gaps = find_gaps(trace, 1_B);
  const Reruns reruns{trace, gaps};
  const std::uint32_t a = gap_of(trace, gaps, 0), c = gap_of(trace, gaps, 2);
  const auto follow = [&](std::vector<std::uint32_t> copied, std::vector<std::uint32_t> dropped) {
    return reruns.follow(copied, dropped);
  };
  // If only a is dropped, it is recomputed for op 6, which reads it.
  Reruns::Effect effect = follow({}, {a});
  CHECK(effect.due[a] == 6);
  CHECK(effect.total == 10_ns);
  CHECK(effect.time[6] == 10_ns);
  CHECK(effect.held[6] == 0_B);
  // If both are dropped, op 5 needs c, c needs b, and b needs a. b has been freed, and is resident only for this rerun.
  effect = follow({}, {a, c});
  CHECK(effect.due[c] == 5);
  CHECK(effect.due[a] == 5);
  CHECK(effect.total == 60_ns);
  CHECK(effect.time[5] == 60_ns);
  CHECK(effect.held[5] == 100_B);
  // If a is on the host instead, it must be back for op 5, not only for op 6.
  effect = follow({a}, {c});
  CHECK(effect.due[a] == 5);
  CHECK(effect.total == 50_ns);
  // If only a is on the host, nothing is rerun.
  effect = follow({a}, {});
  CHECK(effect.due[a] == 6);
  CHECK(effect.total == 0_ns);
}

}  // namespace tidepool::reruns_test
