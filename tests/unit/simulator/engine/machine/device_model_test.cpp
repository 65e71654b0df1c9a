// Costs of copies besides their bytes, computed by hand: other copies, kernels, the host, its memory, and pieces.
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/window.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/plan_writer.hpp"
#include "traces/builder.hpp"

namespace tidepool::device_model_test {

using tests::byte_per_nano;
using tests::PlanWriter;

namespace {

RunSpec on(const Machine& machine, Bytes capacity = kNoLimit, const std::string& policy = "none") {
  return {.pool = "best-fit(alignment=1B)",
          .policy = policy,
          .capacity = capacity,
          .machine = machine,
          .overhead_limit = {}};
}

/// w (1000 B) is from before the step, and on the host unless the plan allocates it | op0 writes a (1000 B), 10 ns |
/// op1 writes b (of the given size) and takes `busy` | op2 reads a, b and w, 10 ns.
struct Example {
  VersionId w, a, b;
  Trace trace;

  explicit Example(Nanos busy, Bytes b_size = 1_B) : trace{make(busy, b_size)} {}

  Trace make(Nanos busy, Bytes b_size) {
    TraceBuilder build;
    const BufferId w_buffer = build.existing({.size = 1000_B});
    const BufferId a_buffer = build.alloc({.size = 1000_B});
    a = build.run({.duration = 10_ns}, {{a_buffer, Access::kWrite}})[0];
    const BufferId b_buffer = build.alloc({.size = b_size});
    b = build.run({.duration = busy}, {{b_buffer, Access::kWrite}})[0];
    build.run({.duration = 10_ns}, {{a_buffer}, {b_buffer}, {w_buffer}});
    build.free(a_buffer), build.free(b_buffer), build.free(w_buffer);
    Trace made = build.finish();
    w = made.first_version(w_buffer);
    return made;
  }

  /// From the end of op0 on, a is swapped out and w is swapped in at once.
  Plan both_ways() const {
    PlanWriter plan{trace};
    plan.alloc(a, 0_B).run(OpId{0}).swap_out(a).swap_in(w, 1000_B).alloc(b, 2000_B).run(OpId{1}).run(OpId{2});
    return plan.free(a).free(b).free(w).plan();
  }
  /// b gets a part of a's place, from `offset` on, and is written as soon as that part has been swapped out.
  Plan into_its_place(Bytes offset) const {
    PlanWriter plan{trace};
    plan.alloc(a, 0_B).run(OpId{0}).swap_out(a).drop(a).alloc(b, offset).run(OpId{1}).swap_in(w, 4000_B);
    return plan.swap_in(a, 3000_B).run(OpId{2}).free(a).free(b).free(w).plan();
  }
};

}  // namespace

TEST_CASE("simultaneous copies in both directions end later if the directions share the link") {
  const Example example{100_ns};
  const auto makespan = [&](std::int64_t out_ppm, std::int64_t in_ppm) {
    Machine machine = byte_per_nano();
    machine.d2h.duplex_ppm = out_ppm;
    machine.h2d.duplex_ppm = in_ppm;
    return replay(example.trace, on(machine), example.both_ways()).makespan;
  };
  CHECK(makespan(1'000'000, 1'000'000) == 10_ns + 1000_ns + 10_ns);  // w is copied from 10 to 1010 ns; then op2
  CHECK(makespan(500'000, 500'000) == 10_ns + 2000_ns + 10_ns);      // both are copied from 10 to 2010 ns
  CHECK(makespan(1'000'000, 500'000) == 10_ns + 1500_ns + 10_ns);    // half of w by 1010 ns, the rest alone by 1510 ns
  CHECK(makespan(500'000, 1'000'000) == 10_ns + 1500_ns);            // w by 1010 ns, op2 by 1020 ns; a by 1510 ns
}

TEST_CASE("releasing memory to the device waits for simultaneous copies in both directions") {
  const Example example{100_ns};
  PlanWriter plan{example.trace};
  plan.reserve(0_B, 5000_B).reserve(8000_B, 1000_B).alloc(example.a, 0_B).run(OpId{0}).swap_out(example.a);
  plan.swap_in(example.w, 1000_B).release(8000_B, 1000_B).alloc(example.b, 2000_B).run(OpId{1}).run(OpId{2});
  plan.free(example.a).free(example.b).free(example.w);
  Machine machine = byte_per_nano();
  machine.segment_free = 7_ns;
  CHECK(replay(example.trace, on(machine), plan.plan()).makespan == 1010_ns + 7_ns + 100_ns + 10_ns);
  machine.d2h.duplex_ppm = machine.h2d.duplex_ppm = 500'000;
  CHECK(replay(example.trace, on(machine), plan.plan()).makespan == 2010_ns + 7_ns + 100_ns + 10_ns);
}

TEST_CASE("a measured time holds for its size, and times of other sizes are interpolated") {
  Link link{BytesPerSecond{1'000'000'000}, 100_ns, {{1000_B, 1100_ns}, {3000_B, 2100_ns}}};
  CHECK(link.time(0_B) == 100_ns);
  CHECK(link.time(1_B) == 101_ns);
  CHECK(link.time(500_B) == 600_ns);
  CHECK(link.time(1000_B) == 1100_ns);
  CHECK(link.time(1001_B) == 1101_ns);  // 1100.5, rounded up
  CHECK(link.time(2000_B) == 1600_ns);
  CHECK(link.time(3000_B) == 2100_ns);
  CHECK(link.time(3007_B) == 2107_ns);  // beyond the last measured size, at the link's rate
}

TEST_CASE("bounds take the link's highest rate over all pieces of an idle interval's buffer") {
  const Link link{BytesPerSecond{1'000'000'000}, 100_ns, {{1000_B, 2000_ns}, {3000_B, 10'000_ns}}};
  const auto rate = [&](Bytes size) {
    Absence absence;
    absence.size = size;
    return fastest(link, std::span{&absence, 1});
  };
  CHECK(rate(1000_B) == Approx(0.5));
  CHECK(rate(2000_B) == Approx(0.5));     // not 2000 / 6000
  CHECK(rate(9000_B) == Approx(0.5625));  // 9000 / 16000: the link is faster beyond the table
}

TEST_CASE("a kernel is slower only while data moves") {
  Machine machine = byte_per_nano();
  machine.d2h.slowdown_ppm = 250'000;
  const auto totals = [&](Nanos busy) {
    const Example example{busy};
    PlanWriter plan{example.trace};
    plan.alloc(example.a, 0_B).alloc(example.w, 1000_B).run(OpId{0}).swap_out(example.a).alloc(example.b, 2000_B);
    plan.run(OpId{1}).run(OpId{2}).free(example.a).free(example.b).free(example.w);
    return replay(example.trace, on(machine), plan.plan());
  };
  // a is swapped out from 10 to 1010 ns. In these 1000 ns, op1 does 1000 / 1.25 = 800 ns of its work.
  CHECK(totals(5000_ns).makespan == 10_ns + 5200_ns + 10_ns);
  CHECK(totals(5000_ns).slowdown == 200_ns);
  CHECK(totals(800_ns).makespan == 10_ns + 1000_ns + 10_ns);
  CHECK(totals(801_ns).makespan == 10_ns + 1001_ns + 10_ns);
  CHECK(totals(400_ns).slowdown == 100_ns + 3_ns);  // op2 is slower, too: from 510 to 522.5 ns, rounded up
  machine.h2d.slowdown_ppm = 3'000'000;             // no effect: no data is swapped in
  CHECK(totals(5000_ns).slowdown == 200_ns);
}

TEST_CASE("slow-downs by data in both directions add up") {
  Machine machine = byte_per_nano();
  machine.d2h.slowdown_ppm = 250'000;
  machine.h2d.slowdown_ppm = 750'000;
  const Example example{5000_ns};
  // From 10 to 1010 ns data moves both ways: op1 does 1000 / 2 ns of its work.
  const Totals totals = replay(example.trace, on(machine), example.both_ways());
  CHECK(totals.slowdown == 500_ns);
  CHECK(totals.makespan == 10_ns + 5500_ns + 10_ns);
}

TEST_CASE("a place that is swapped out in pieces is written again piece by piece") {
  Machine whole = byte_per_nano(), pieces = byte_per_nano();
  pieces.chunk = 250_B;
  // a is swapped out from 10 ns on. op1 writes b in a's place: it starts when the pieces under b have left.
  const auto start = [](const Machine& machine, Bytes size, Bytes offset) {
    const Example example{100_ns, size};
    return replay(example.trace, on(machine), example.into_its_place(offset)).stall.d2h + 10_ns;
  };
  CHECK(start(whole, 250_B, 0_B) == 1010_ns);
  CHECK(start(pieces, 250_B, 0_B) == 260_ns);
  CHECK(start(pieces, 251_B, 0_B) == 510_ns);
  CHECK(start(pieces, 1_B, 749_B) == 760_ns);
  CHECK(start(pieces, 1_B, 750_B) == 1010_ns);
  pieces.d2h.latency = 5_ns;  // of each piece
  CHECK(start(pieces, 251_B, 0_B) == 520_ns);
}

TEST_CASE("with pieces, a swap-in may begin in a place whose swap-out still runs") {
  const Example example{100_ns};
  PlanWriter plan{example.trace};
  plan.alloc(example.a, 0_B).run(OpId{0}).swap_out(example.a).drop(example.a).swap_in(example.w, 0_B);
  plan.alloc(example.b, 2000_B)
      .run(OpId{1})
      .swap_in(example.a, 3000_B)
      .run(OpId{2})
      .free(example.a)
      .free(example.b)
      .free(example.w);
  Machine machine = byte_per_nano();
  // a is swapped out from 10 to 1010 ns, then w is swapped in there, then a is swapped in elsewhere, then op2 runs.
  CHECK(replay(example.trace, on(machine), plan.plan()).makespan == 1010_ns + 1000_ns + 1000_ns + 10_ns);
  machine.chunk = 250_B;  // the first quarter of w is copied from 260 ns on
  CHECK(replay(example.trace, on(machine), plan.plan()).makespan == 1010_ns + 250_ns + 1000_ns + 10_ns);
}

TEST_CASE("a copy is cut into at most 1024 pieces") {
  Machine machine = byte_per_nano();
  CHECK(machine.cut(10_GiB).count == 1);
  machine.chunk = 1_MiB;
  CHECK(machine.cut(1_MiB).count == 1);
  CHECK(machine.cut(1_MiB + 1_B).count == 2);
  CHECK(machine.cut(1_GiB).count == 1024);
  CHECK(machine.cut(1_GiB + 1_B).count == 1024);
  CHECK(machine.cut(Bytes{std::int64_t{1} << 62}).size == Bytes{std::int64_t{1} << 52});
}

TEST_CASE("the host submits copies one after the other, and a copy begins after its submission") {
  const Example example{100_ns};
  Machine machine = byte_per_nano();
  machine.submit = 400_ns;
  // The host submits a's copy by 400 ns and w's by 800 ns; w is there by 1800 ns.
  CHECK(replay(example.trace, on(machine), example.both_ways()).makespan == 800_ns + 1000_ns + 10_ns);
  machine.submit = 4_ns;  // both copies are submitted before op0 has ended
  CHECK(replay(example.trace, on(machine), example.both_ways()).makespan == 10_ns + 1000_ns + 10_ns);
  machine.submit = 400_ns;
  machine.chunk = 500_B;  // 2 pieces each: w's are submitted by 1200 and 1600 ns, the second while the first is copied
  CHECK(replay(example.trace, on(machine), example.both_ways()).makespan == 1200_ns + 1000_ns + 10_ns);
  machine.submit = 600_ns;  // w's are submitted by 1800 and 2400 ns, so the second waits for the host
  CHECK(replay(example.trace, on(machine), example.both_ways()).makespan == 2400_ns + 500_ns + 10_ns);
}

TEST_CASE("the host launches one op after the other, and a wait stops it until the work before has ended") {
  TraceBuilder build;
  for (int i = 0; i < 3; ++i) build.run({.duration = 10_ns}, {});
  build.run({.kind = OpKind::kHostWait}, {});
  build.run({.duration = 10_ns}, {});
  const Trace trace = build.finish();
  Machine machine = byte_per_nano();
  machine.launch = 4_ns;
  const Result ahead = simulate(trace, on(machine));
  CHECK(ahead.totals.makespan == 4_ns + 30_ns + 4_ns + 10_ns);  // the last op is launched after the wait
  CHECK(ahead.baseline == ahead.totals.makespan);
  machine.launch = 25_ns;
  CHECK(simulate(trace, on(machine)).totals.makespan == Nanos{5 * 25} + 10_ns);
}

TEST_CASE("a swap-out for which the host has no memory does not happen, and the run is out of memory") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 1000_B});
  build.run({.duration = 10_ns}, {{b, Access::kWrite}});
  build.free(b);
  build.run({.duration = 10_ns}, {{a}});
  build.free(a);
  const Trace trace = build.finish();
  const auto run = [&](Bytes host, bool powers_of_two) {
    Machine machine = byte_per_nano();
    machine.host = {host, powers_of_two};
    return simulate(trace, on(machine, 1000_B, "lru-swap"), true);
  };
  CHECK(run(1000_B, false).outcome == Outcome::kOk);
  CHECK(run(1000_B, false).totals.host_peak == 1000_B);
  const Result full = run(999_B, false);
  CHECK(full.outcome == Outcome::kOutOfMemory);
  CHECK(full.message ==
        "op 1 wants 1000 B for buffer 1; 1000 B are held of 1000 B, the largest hole is 0 B, 0 B are in use of 999 B "
        "on the host, and no policy makes room");
  CHECK(run(1023_B, true).outcome == Outcome::kOutOfMemory);
  CHECK(run(1_KiB, true).outcome == Outcome::kOk);
  CHECK(run(1_KiB, true).totals.host_peak == 1_KiB);

  Machine small = byte_per_nano();
  small.host.capacity = 999_B;
  CHECK_THROWS_WITH(replay(trace, on(small), run(1000_B, false).realised),
                    "swap out version 0 before op 1: it takes 1000 B on the host, where 0 B are in use of 999 B");
}

TEST_CASE("the host is busy while it pins the target of a buffer's first swap-out") {
  const Example example{100_ns};
  Machine machine = byte_per_nano();
  machine.host = {.pin_latency = 300_ns, .pin_rate = BytesPerSecond{1'000'000'000}};
  PlanWriter plan{example.trace};
  plan.alloc(example.w, 1000_B)
      .alloc(example.a, 0_B)
      .run(OpId{0})
      .swap_out(example.a)
      .alloc(example.b, 2000_B)
      .run(OpId{1});
  plan.run(OpId{2}).free(example.a).free(example.b).free(example.w);
  const Totals totals = replay(example.trace, on(machine), plan.plan());
  CHECK(totals.makespan == 1300_ns + 1000_ns);  // the copy begins when its block is pinned
  CHECK(totals.host_peak == 1000_B);
}

}  // namespace tidepool::device_model_test
