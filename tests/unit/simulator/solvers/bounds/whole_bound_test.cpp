// The bounds by whole buffers, for one step and for a repeated step: closed forms that runs and bounds both reach.
#include <string>

#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::whole_bound_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

struct Asked {
  Bytes capacity;
  bool remat = false, steady = false;
  Machine machine = kMachine;
};

/// The bound by whole buffers; 0 if there is none, because no time is lost or the step is too large.
Nanos bound_of(const Trace& trace, const Asked& asked) {
  const BoundQuery query{.trace = trace,
                         .machine = asked.machine,
                         .capacity = asked.capacity,
                         .swap = true,
                         .remat = asked.remat,
                         .steady = asked.steady};
  for (const Bound& bound : compute_bounds(query, BoundEffort::kAll))
    if (bound.name == (asked.remat ? "hybrid-whole" : "swap-whole")) return bound.makespan;
  return {};
}

/// Checks equality, except for the part that the bound subtracts for rounding.
void check_tight(Nanos bound, Nanos exact) {
  CHECK(bound <= exact);
  CHECK(bound + 3_ns >= exact);
}

void needs_room(TraceBuilder& build, Bytes size, Nanos duration) {
  const BufferId room = build.alloc({.size = size});
  build.run({.duration = duration}, {{room, Access::kWrite}});
  build.free(room);
}

/// An op of `before`, unless that is 0 | an op of `first` reads a weight of 1 kB | an op of 100 ns needs the weight's
/// memory | the last op, of 100 ns, reads the weight.
Trace weight_twice(Nanos first, Nanos before = {}) {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 1'000_B, .outlives = true});
  if (before > Nanos{}) build.run({.duration = before}, {});
  build.run({.duration = first}, {{weight}});
  needs_room(build, 1'000_B, 100_ns);
  build.run({.duration = 100_ns}, {{weight}});
  return build.finish();
}

}  // namespace

TEST_CASE("a buffer leaves as a whole, even if one byte of it would make enough room") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  needs_room(build, 1'000_B, 100_ns);
  build.run({.duration = 100_ns}, {{a}});
  build.free(a);
  const Trace trace = build.finish();
  check_tight(bound_of(trace, {.capacity = 1'999_B}), 300_ns + 2'000_ns);
  check_tight(bound_of(trace, {.capacity = 1'000_B}), 300_ns + 2'000_ns);
  CHECK(bound_of(trace, {.capacity = 2'000_B}) == Nanos{});
  CHECK(bound_of(trace, {.capacity = 1'999_B, .steady = true}) >= 300_ns + 1'997_ns);
}

TEST_CASE("a copy takes its latency, even if larger copies are faster per byte") {
  // a (1 kB) must leave. b (100 kB) need not leave; its copy is faster per byte.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000_B}), b = build.alloc({.size = 100'000_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}, {b, Access::kWrite}});
  needs_room(build, 1'000_B, 100_ns);
  build.run({.duration = 100_ns}, {{a}, {b}});
  const Trace trace = build.finish();
  Machine machine = kMachine;
  machine.d2h.latency = machine.h2d.latency = 500_ns;
  check_tight(bound_of(trace, {.capacity = 101'000_B, .machine = machine}), 300_ns + 3'000_ns);
}

TEST_CASE("content from before the step is either on the device or on the host when the step begins, not on both") {
  // If it begins on the device, it leaves during op 0 and is swapped in after op 1. If it begins on the host, it is
  // swapped in twice: also before op 0.
  check_tight(bound_of(weight_twice(100_ns), {.capacity = 1'000_B}), 300_ns + 900_ns + 1'000_ns);
  check_tight(bound_of(weight_twice(5'000_ns), {.capacity = 1'000_B}), 5'200_ns + 1'000_ns);
  // If it begins on the host, it is swapped in during an op before its first use. A swap-out would take ten times as
  // long.
  Machine slow_out = kMachine;
  slow_out.d2h.rate = BytesPerSecond{100'000'000};
  check_tight(bound_of(weight_twice(100_ns, 700_ns), {.capacity = 1'000_B, .machine = slow_out}),
              1'000_ns + 300_ns + 1'000_ns);
  // In a repeated step, the host keeps content that is never written. One swap-in, after the op that needs the memory,
  // serves the last op and the next op 0.
  check_tight(bound_of(weight_twice(100_ns), {.capacity = 1'000_B, .steady = true}), 300_ns + 1'000_ns);
}

TEST_CASE("content that outlives the step ends on the host only if its buffer began there") {
  for (const bool read_first : {false, true}) {
    TraceBuilder build;
    const BufferId weight = build.existing({.size = 1'000_B, .outlives = true});
    build.run({.duration = 100_ns}, {{weight, read_first ? Access::kReadWrite : Access::kWrite}});
    needs_room(build, 1'000_B, 100_ns);
    const Trace trace = build.finish();
    // If op 0 reads the weight, the weight either begins on the device, leaves and returns, or begins on the host, is
    // swapped in and leaves. If op 0 only writes it, it begins on the host at no cost, and leaves.
    check_tight(bound_of(trace, {.capacity = 1'000_B}), 200_ns + (read_first ? 2'000_ns : 1'000_ns));
  }
}

TEST_CASE("a buffer is recomputed or copied as a whole, and recomputation needs its inputs") {
  // op 0 makes a, op 1 makes b from a; no later op reads a. An op needs the memory of one of them; then b is read.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000_B}), b = build.alloc({.size = 1'000_B});
  build.run({.duration = 300_ns}, {{a, Access::kWrite}});
  build.run({.duration = 200_ns}, {{a}, {b, Access::kWrite}});
  build.free(a);
  needs_room(build, 1'500_B, 100_ns);
  build.run({.duration = 100_ns}, {{b}});
  build.free(b);
  const Trace trace = build.finish();
  // a does not fit beside that op either, so both ops run again. Copies would take 2000 ns.
  check_tight(bound_of(trace, {.capacity = 2'000_B, .remat = true}), 700_ns + 500_ns);
  check_tight(bound_of(trace, {.capacity = 2'499_B, .remat = true}), 700_ns + 500_ns);
  // One of the two fits beside that op, so nothing is recomputed.
  CHECK(bound_of(trace, {.capacity = 2'500_B, .remat = true}) == Nanos{});
}

TEST_CASE("a step that is too large is left to other bounds") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1'000_B});
  build.run({.duration = 100_ns}, {{a, Access::kWrite}});
  for (int i = 0; i < 50; ++i) needs_room(build, 1'000_B, 100_ns);
  build.run({.duration = 100_ns}, {{a}});
  const Trace trace = build.finish();
  CHECK(bound_of(trace, {.capacity = 1'000_B}) == Nanos{});
  CHECK(best_bound({.trace = trace, .machine = kMachine, .capacity = 1'000_B, .swap = true}, BoundEffort::kAll)
            ->makespan > 5'200_ns + 1'900_ns);
}

}  // namespace tidepool::whole_bound_test
