#include "simulator/studies/report/history.hpp"

#include <map>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/paths.hpp"
#include "tests/random_trace.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::history_test {

namespace {

Trace sample(const std::string& name) {
  return load_trace(paths::source_folder() + "/traces/samples/" + name + ".tide");
}

/// Checks all facts that a history contains twice, or that it shares with the totals.
void check(const Trace& trace, const RunSpec& spec) {
  INFO(spec.policy.text << " on " << spec.pool.text << ", " << spec.machine.name << ", " << to_text(spec.capacity));
  const Result result = simulate(trace, spec, true);
  const History history = history_of(trace, spec, result.realised);
  CHECK(history.totals == result.totals);

  Bytes peak, out, in;
  for (const MemoryPoint& point : history.memory) peak = std::max(peak, point.sum());
  CHECK(peak == result.totals.peak);
  for (const CopySpan& copy : history.copies) {
    (copy.direction == Direction::kOut ? out : in) += trace.size(copy.version);
    CHECK(copy.issued <= copy.begin);
    CHECK(copy.begin <= copy.end);
  }
  Nanos waited;
  std::int64_t again = 0, evicted = 0;
  for (const RunSpan& run : history.runs) {
    waited += run.op.valid() ? run.waited : Nanos{};
    again += run.again ? 1 : 0;
  }
  for (const Stay& stay : history.stays) evicted += stay.leaving == Leaving::kEvicted ? 1 : 0;
  if (spec.iterations == 1) {
    CHECK(out == result.totals.swap_out);
    CHECK(in == result.totals.swap_in);
    CHECK(waited == result.totals.stall.compute);
    CHECK(again == result.totals.recompute_count);
    CHECK(evicted == result.totals.eviction_count);
    CHECK(history.end - history.begin == result.totals.makespan);
  }

  // Checks that no two stays overlap: when a stay begins, and all that have ended by then are removed, its addresses
  // are free.
  std::multimap<Nanos, const Stay*> ends;
  std::map<Bytes, Bytes> live;
  for (const Stay& stay : history.stays) {
    if (stay.offset == kNoAddress || stay.begin == stay.end) continue;
    for (; !ends.empty() && ends.begin()->first <= stay.begin; ends.erase(ends.begin()))
      live.erase(ends.begin()->second->offset);
    const auto next = live.lower_bound(stay.offset);
    CHECK((next == live.end() || next->first >= stay.offset + stay.held));
    CHECK((next == live.begin() || std::prev(next)->second <= stay.offset));
    live[stay.offset] = stay.offset + stay.held;
    ends.emplace(stay.end, &stay);
  }
}

/// Checks that each stay is within reserved memory, and that no more is reserved than the run says.
void check_segments(const Trace& trace, const RunSpec& spec) {
  const Result result = simulate(trace, spec, true);
  const History history = history_of(trace, spec, result.realised);
  const auto reserved_at = [&](Nanos time) {
    std::map<Bytes, Bytes> reserved;
    for (const ReservedSegment& segment : history.segments)
      if (segment.begin <= time && time < segment.end) reserved[segment.offset] = segment.offset + segment.size;
    return reserved;
  };
  Bytes most;
  for (const Stay& stay : history.stays) {
    if (stay.begin == stay.end) continue;
    const std::map<Bytes, Bytes> reserved = reserved_at(stay.begin);
    Bytes covered = stay.offset, sum;
    for (const auto& [offset, end] : reserved) {
      if (offset <= covered) covered = std::max(covered, end);
      sum += end - offset;
    }
    CHECK(covered >= stay.offset + stay.held);
    most = std::max(most, sum);
  }
  CHECK(most <= result.totals.footprint);
  CHECK(most >= result.totals.footprint / 2);
}

}  // namespace

TEST_CASE("a history agrees with the totals of its run, and no two stays overlap") {
  Machine shared = find_machine("a100-pcie4");  // both directions of its link slow each other down
  shared.chunk = 4_MiB;
  const Machine apart = find_machine("g10-a100");
  for (const char* name : {"resnet50", "bilstm"}) {
    const Trace trace = sample(name);
    const Bytes capacity{trace.ideal_peak().count() * 6 / 10};
    for (const Machine& machine : {shared, apart})
      for (const char* policy : {"dtr-eq", "lru-swap", "g10", "lru-swap+dtr"})
        for (const char* pool : {"best-fit", "pytorch", "ideal"})
          check(trace, {.pool = pool, .policy = policy, .capacity = capacity, .machine = machine});
    check(trace, {.policy = "lru-swap", .capacity = capacity, .machine = shared, .iterations = 3});
    check(trace, {.capacity = capacity});  // out of memory: the history up to the failure
  }
}

TEST_CASE("a history of random programs with in-place writes agrees with the totals of its run") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = tests::random_trace(seed, 40);
    for (const char* policy : {"none", "dtr", "lru-swap"})
      check(trace, {.policy = policy,
                    .capacity = Bytes{trace.ideal_peak().count() * 7 / 10},
                    .machine = find_machine("a100-pcie4")});
  }
}

TEST_CASE("every buffer lies in reserved memory, also after pages of a larger reservation have been released") {
  const Trace trace = sample("resnet50");
  for (const char* pool : {"pytorch", "pytorch-expandable"})
    check_segments(trace, {.pool = pool,
                           .policy = "lru-swap",
                           .capacity = Bytes{trace.ideal_peak().count() * 8 / 10},
                           .machine = find_machine("a100-pcie4")});
}

TEST_CASE("an evicted buffer names the request for which it was evicted") {
  // op0 makes a, op1 makes b, op2 reads a, and only one of them fits. b evicts a, and then a's swap-in evicts b.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_MiB});
  build.run({.duration = 1_ms}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_MiB});
  build.run({.duration = 1_ms}, {{b, Access::kWrite}});
  build.run({.duration = 1_ms}, {{a, Access::kRead}});
  build.free(a);
  build.free(b);
  const Trace trace = build.finish();
  const RunSpec spec{.policy = "lru-swap", .capacity = 100_MiB, .machine = find_machine("g10-a100")};
  const History history = history_of(trace, spec, simulate(trace, spec, true).realised);
  REQUIRE(history.stays.size() == 3);
  CHECK(history.stays[0].buffer == a);
  CHECK(history.stays[0].leaving == Leaving::kEvicted);
  CHECK(history.stays[0].room_for == b);
  CHECK(history.stays[1].room_for == a);
  CHECK(history.stays[2].arrival == Arrival::kCopiedIn);
  CHECK(history.stays[2].leaving == Leaving::kFreed);
  // op1 waits until a has left, op2 until a is back.
  REQUIRE(history.copies.size() == 3);
  CHECK(history.runs[1].cause == Cause::kCopyOut);
  CHECK(history.runs[2].cause == Cause::kCopyIn);
}

TEST_CASE("if a trace has no durations, the time axis counts events") {
  // One buffer exists before the step. The events are alloc, run, alloc, free, free.
  TraceBuilder build;
  build.existing({.size = 100_B});
  const BufferId a = build.alloc({.size = 200_B});
  build.run({}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 300_B});
  build.free(a);
  build.free(b);
  const Trace trace = build.finish();
  const RunSpec spec{.pool = "pytorch"};
  const History history = history_of(trace, spec, simulate(trace, spec, true).realised);
  CHECK(history.counted);
  REQUIRE(history.stays.size() == 3);
  CHECK(history.stays[0].begin == 0_ns);
  CHECK(history.stays[1].begin == 1_ns);
  CHECK(history.stays[1].end == 4_ns);
  CHECK(history.stays[2].begin == 3_ns);
  CHECK(history.stays[2].end == 5_ns);
  CHECK(history.runs.at(0).begin == 2_ns);
  CHECK(history.end == 6_ns);
  CHECK(history.memory.back().held[0] == 100_B);
}

}  // namespace tidepool::history_test
