#include "validator/host/host_backend.hpp"

#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"

namespace tidepool::host_backend_test {

using tests::PlanWriter;

namespace {

/// op0 writes a | op1 writes b | op2 reads a and b, writes c. a and b end with op2; c is the output.
struct ThreeOps {
  VersionId a, b, c;
  Trace trace;

  static ThreeOps make() {
    TraceBuilder build;
    const BufferId a = build.alloc({.size = 4096_B}), b = build.alloc({.size = 4096_B}),
                   c = build.alloc({.size = 512_B});
    const VersionId a1 = build.run({.duration = 1_us}, {{a, Access::kWrite}})[0];
    const VersionId b1 = build.run({.duration = 1_us}, {{b, Access::kWrite}})[0];
    const VersionId c1 = build.run({.duration = 1_us}, {{a}, {b}, {c, Access::kWrite}})[2];
    build.free(a), build.free(b);
    return {a1, b1, c1, build.finish()};
  }
};

/// Runs a plan with and without threads. Both runs must agree in everything but time.
HostReport execute_both_ways(const Trace& trace, const Plan& plan, HostOptions options = {}) {
  options.threads = false;
  const HostReport alone = execute_on_host(trace, plan, options);
  options.threads = true;
  HostReport together = execute_on_host(trace, plan, options);
  CHECK(alone.outcome == together.outcome);
  CHECK(alone.message == together.message);
  CHECK(alone.corrupt == together.corrupt);
  CHECK(alone.peak == together.peak);
  CHECK(alone.read == together.read);
  return together;
}

}  // namespace

TEST_CASE("the host runs a plan that swaps and recomputes, and every read finds the bytes that the program wrote") {
  const ThreeOps step = ThreeOps::make();
  PlanWriter plan{step.trace};
  plan.alloc(step.a, 0_B).run(OpId{0}).swap_out(step.a).drop(step.a);
  plan.alloc(step.b, 0_B).run(OpId{1}).drop(step.b).swap_in(step.a, 0_B);
  plan.alloc(step.b, 4096_B).run(OpId{1}).alloc(step.c, 8192_B).run(OpId{2}).free(step.a).free(step.b);
  const HostReport report = execute_both_ways(step.trace, plan.plan());
  CHECK(report.message == "");
  CHECK(report.outcome == HostOutcome::kOk);
  CHECK(report.corrupt == 0_B);
  CHECK(report.peak == 8704_B);              // a, b and c
  CHECK(report.read == 4096_B * 2 + 512_B);  // a and b by op 2, c as the output
}

TEST_CASE("a read finds wrong bytes if the plan places a buffer over a live one") {
  const ThreeOps step = ThreeOps::make();
  PlanWriter plan{step.trace};
  plan.alloc(step.a, 0_B).run(OpId{0});
  plan.alloc(step.b, 2048_B).run(OpId{1});  // b overlaps the second half of a
  plan.alloc(step.c, 8192_B).run(OpId{2});
  const HostReport report = execute_both_ways(step.trace, plan.plan());
  CHECK(report.outcome == HostOutcome::kCorrupt);
  REQUIRE(report.first);
  CHECK(report.first->op == OpId{2});
  CHECK(report.first->version == step.a);
  CHECK(report.first->offset == 2048_B);
  CHECK(report.corrupt == 2048_B + 512_B);  // half of a, and c, which is computed from a
  CHECK_THAT(report.message,
             ContainsSubstring("run op 2 before op 2: reads version 0 (buffer 0): byte 2048 is wrong; expected "));

  PlanWriter beside{step.trace};
  beside.alloc(step.a, 0_B).run(OpId{0}).alloc(step.b, 4096_B).run(OpId{1}).alloc(step.c, 8192_B).run(OpId{2});
  CHECK(execute_both_ways(step.trace, beside.plan()).outcome == HostOutcome::kOk);
}

TEST_CASE("the report says if wrong bytes are another version's content or cleared memory") {
  const ThreeOps step = ThreeOps::make();
  PlanWriter shared{step.trace};
  shared.alloc(step.a, 0_B).run(OpId{0}).alloc(step.b, 0_B).run(OpId{1}).alloc(step.c, 8192_B).run(OpId{2});
  const HostReport report = execute_both_ways(step.trace, shared.plan());
  REQUIRE(report.first);
  CHECK(report.first->found_is == "the content of version 1 (buffer 1)");

  PlanWriter dropped{step.trace};  // b's place is freed, and thus cleared, while half of a is in it
  dropped.alloc(step.b, 2048_B).alloc(step.a, 0_B).run(OpId{0}).run(OpId{1}).drop(step.b);
  dropped.alloc(step.b, 8192_B).run(OpId{1}).alloc(step.c, 16384_B).run(OpId{2});
  HostOptions inline_only;
  inline_only.threads = false;
  const HostReport cleared = execute_on_host(step.trace, dropped.plan(), inline_only);
  REQUIRE(cleared.first);
  CHECK(cleared.first->found_is == "cleared memory");
}

TEST_CASE("a plan that no memory could execute is refused with the action") {
  const ThreeOps step = ThreeOps::make();
  PlanWriter freed{step.trace};
  freed.alloc(step.a, 0_B).run(OpId{0}).free(step.a).alloc(step.b, 0_B).run(OpId{1}).alloc(step.c, 8192_B).run(OpId{2});
  CHECK_THROWS_WITH(execute_on_host(step.trace, freed.plan()),
                    "run op 2 before op 2: version 0 has no place to be read from");
  PlanWriter no_place{step.trace};
  no_place.run(OpId{0});
  CHECK_THROWS_WITH(execute_on_host(step.trace, no_place.plan()),
                    "run op 0 before op 0: version 0 has no place to be written to");
  PlanWriter not_there{step.trace};
  not_there.alloc(step.a, 0_B).run(OpId{0}).drop(step.a).swap_in(step.a, 0_B);
  CHECK_THROWS_WITH(execute_on_host(step.trace, not_there.plan()),
                    "swap in version 0 before op 1: it is not on the host");
  PlanWriter twice{step.trace};
  twice.alloc(step.a, 0_B).run(OpId{0}).run(OpId{0});
  CHECK_THROWS_WITH(execute_on_host(step.trace, twice.plan()),
                    "run op 0 before op 1: version 0 has its content already, and there is no other place to write it");
  PlanWriter small{step.trace};
  Plan too_small = small.alloc(step.a, 0_B).plan();
  too_small.actions[0].size = 4095_B;
  CHECK_THROWS_WITH(execute_on_host(step.trace, too_small),
                    "alloc version 0 before op 0: 4095 bytes for a version of 4096");
  PlanWriter lost{step.trace};
  lost.alloc(step.a, 0_B)
      .run(OpId{0})
      .alloc(step.b, 4096_B)
      .run(OpId{1})
      .alloc(step.c, 8192_B)
      .run(OpId{2})
      .drop(step.c);
  CHECK_THROWS_WITH(
      execute_on_host(step.trace, lost.plan()),
      "version 2, which the step leaves behind, is neither on the device nor on the host when the step ends");
  Plan unknown;
  unknown.actions = {{Verb::kDrop, OpId{0}, 3, {}, {}}};
  CHECK_THROWS_WITH(execute_on_host(step.trace, unknown),
                    "drop version 3 before op 0: version 3 is unknown; the trace has 3");
  unknown.actions = {{Verb::kRun, OpId{0}, 3, {}, {}}};
  CHECK_THROWS_WITH(execute_on_host(step.trace, unknown), "run op 3 before op 0: op 3 is unknown; the trace has 3");
}

TEST_CASE("an op that runs before its input is written reads the wrong bytes") {
  const ThreeOps step = ThreeOps::make();
  PlanWriter plan{step.trace};
  plan.alloc(step.a, 0_B).alloc(step.b, 4096_B).alloc(step.c, 8192_B).run(OpId{0}).run(OpId{2}).run(OpId{1});
  const HostReport report = execute_both_ways(step.trace, plan.plan());
  CHECK(report.outcome == HostOutcome::kCorrupt);
  REQUIRE(report.first);
  CHECK(report.first->version == step.b);
  CHECK(report.first->found_is == "memory that was never written");
}

TEST_CASE("an update in place replaces the old content, and a copy keeps it") {
  // op0 writes a | op1 adds to a in place | op2 reads a, writes b.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1024_B}), b = build.alloc({.size = 1024_B});
  const VersionId first = build.run({}, {{a, Access::kWrite}})[0];
  const VersionId second = build.run({}, {{a, Access::kReadWrite}})[0];
  const VersionId made = build.run({}, {{a}, {b, Access::kWrite}})[1];
  const Trace trace = build.finish();

  PlanWriter in_place{trace};
  in_place.alloc(first, 0_B).run(OpId{0}).run(OpId{1}).alloc(made, 1024_B).run(OpId{2});
  CHECK(execute_both_ways(trace, in_place.plan()).outcome == HostOutcome::kOk);

  PlanWriter again{trace};
  again.alloc(first, 0_B).run(OpId{0}).run(OpId{1}).run(OpId{1});
  CHECK_THROWS_WITH(execute_on_host(trace, again.plan()),
                    "run op 1 before op 2: version 1 has its content already, and there is no other place to write it");

  PlanWriter copied{trace};
  copied.alloc(first, 0_B).run(OpId{0}).alloc(second, 2048_B).copy(second).run(OpId{1}).drop(second);
  copied.alloc(second, 4096_B).copy(second).run(OpId{1}).alloc(made, 1024_B).run(OpId{2});
  CHECK(execute_both_ways(trace, copied.plan()).outcome == HostOutcome::kOk);

  PlanWriter not_copied{trace};
  not_copied.alloc(first, 0_B).run(OpId{0}).alloc(second, 2048_B).run(OpId{1}).alloc(made, 1024_B).run(OpId{2});
  CHECK(execute_both_ways(trace, not_copied.plan()).outcome == HostOutcome::kCorrupt);
  HostOptions copy_on_write;
  copy_on_write.copy_on_write = true;  // the op itself reads the old place and writes the new one
  CHECK(execute_both_ways(trace, not_copied.plan(), copy_on_write).outcome == HostOutcome::kOk);
}

TEST_CASE("a rerun whose output is resident writes a scratch place, or overwrites the version that it replaces") {
  // op0 writes a | op1 adds to a in place and writes b | op2 reads a and b, writes c.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1024_B}), b = build.alloc({.size = 1024_B}), c = build.alloc({.size = 8_B});
  const VersionId a1 = build.run({}, {{a, Access::kWrite}})[0];
  const std::vector<VersionId> made = build.run({}, {{a, Access::kReadWrite}, {b, Access::kWrite}});
  const VersionId out = build.run({}, {{a}, {b}, {c, Access::kWrite}})[2];
  const Trace trace = build.finish();
  const VersionId a2 = made[0], b1 = made[1];
  const auto start = [&] {
    PlanWriter plan{trace};
    plan.alloc(a1, 0_B).run(OpId{0}).alloc(b1, 1024_B).run(OpId{1}).drop(b1);  // a2 is at 0, b1 must be recomputed
    return plan.alloc(a1, 2048_B).run(OpId{0}).alloc(b1, 1024_B);
  };
  PlanWriter over = start();
  over.run(OpId{1}).alloc(out, 8192_B).run(OpId{2});
  const HostReport report = execute_both_ways(trace, over.plan());
  CHECK(report.message == "");
  CHECK(report.peak == 3072_B);

  PlanWriter beside = start();
  beside.scratch(a2, 4096_B).run(OpId{1}).drop(a1).alloc(out, 8192_B).run(OpId{2});
  const HostReport spare = execute_both_ways(trace, beside.plan());
  CHECK(spare.message == "");
  CHECK(spare.peak == 4096_B);

  PlanWriter wrong = start();
  wrong.scratch(out, 4096_B).run(OpId{1});
  CHECK_THROWS_WITH(execute_on_host(trace, wrong.plan()),
                    "run op 1 before op 2: it does not write version 3, for which there is a scratch place");
}

TEST_CASE("a random op that runs again must get the generator state of its first run") {
  TraceBuilder build;
  const BufferId mask = build.alloc({.size = 64_B}), other = build.alloc({.size = 64_B}),
                 out = build.alloc({.size = 64_B});
  const VersionId m = build.run({.random = true}, {{mask, Access::kWrite}})[0];
  const VersionId o = build.run({.random = true}, {{other, Access::kWrite}})[0];
  const VersionId r = build.run({}, {{mask}, {other}, {out, Access::kWrite}})[2];
  const Trace trace = build.finish();
  PlanWriter plan{trace};
  plan.alloc(m, 0_B).run(OpId{0}).drop(m).alloc(o, 0_B).run(OpId{1});
  plan.alloc(m, 64_B).run(OpId{0}).alloc(r, 128_B).run(OpId{2});
  CHECK(execute_both_ways(trace, plan.plan()).outcome == HostOutcome::kOk);
  HostOptions redraws;
  redraws.faults.redraw = true;
  const HostReport report = execute_both_ways(trace, plan.plan(), redraws);
  REQUIRE(report.first);
  CHECK(report.first->version == m);
}

TEST_CASE("a source that runs again gives different content") {
  TraceBuilder build;
  const BufferId batch = build.alloc({.size = 64_B});
  const VersionId v = build.run({.kind = OpKind::kSource}, {{batch, Access::kWrite}})[0];
  const Trace trace = build.finish();
  PlanWriter plan{trace};
  plan.alloc(v, 0_B).run(OpId{0});
  CHECK(execute_both_ways(trace, plan.plan()).outcome == HostOutcome::kOk);
  plan.drop(v).alloc(v, 0_B).run(OpId{0});
  const HostReport report = execute_both_ways(trace, plan.plan());
  CHECK(report.outcome == HostOutcome::kCorrupt);
  REQUIRE(report.first);
  CHECK_FALSE(report.first->op.valid());
  CHECK_THAT(report.message,
             ContainsSubstring("at the end of the step: version 0 (buffer 0): byte 0 is wrong; expected "));
}

TEST_CASE("a backend that reuses a place before its swap-out has ended corrupts the copy") {
  const ThreeOps step = ThreeOps::make();
  PlanWriter plan{step.trace};
  plan.alloc(step.a, 0_B).run(OpId{0}).swap_out(step.a).drop(step.a);
  plan.alloc(step.b, 0_B).run(OpId{1}).swap_in(step.a, 4096_B).alloc(step.c, 8192_B).run(OpId{2});
  HostOptions options;
  options.faults.late_copies = 50_ms;
  CHECK(execute_on_host(step.trace, plan.plan(), options).outcome == HostOutcome::kOk);
  // On a slow link, the copies lose the race. On a busy machine, other lanes may be later still; then a
  // slower link is tried.
  const auto without_waits_on = [&](Verb verb) {
    options.faults.ignore_waits_on = verb;
    HostReport report;
    for (const Nanos late : {50_ms, 500_ms, 5'000_ms, 20'000_ms}) {
      options.faults.late_copies = late;
      report = execute_on_host(step.trace, plan.plan(), options);
      if (report.outcome == HostOutcome::kCorrupt) break;
    }
    return report;
  };
  const HostReport report = without_waits_on(Verb::kSwapOut);
  CHECK(report.outcome == HostOutcome::kCorrupt);
  REQUIRE(report.first);
  CHECK(report.first->version == step.a);
  CHECK(without_waits_on(Verb::kSwapIn).outcome == HostOutcome::kCorrupt);  // op 2 does not wait for its input
}

TEST_CASE("a stuck run ends and reports which lane waits for which other one") {
  const ThreeOps step = ThreeOps::make();
  PlanWriter plan{step.trace};
  plan.alloc(step.a, 0_B).run(OpId{0}).swap_out(step.a).drop(step.a).alloc(step.c, 8192_B);
  // On a busy machine another lane may seem stuck, or the copy may end before the lane waits. Then the run is tried
  // with more patience and a later copy.
  for (const Nanos patience : {20_ms, 500_ms, 2'000_ms}) {
    HostOptions options;
    options.faults.late_copies = patience * 20;
    options.patience = patience;
    const HostReport report = execute_on_host(step.trace, plan.plan(), options);
    const std::string expected =
        "upkeep (drop version 0 before op 1) waits for d2h (swap out version 0 before op 1), and nothing has ended "
        "for " +
        to_text(patience);
    if (report.message != expected && patience < 2'000_ms) continue;
    CHECK(report.outcome == HostOutcome::kStuck);
    CHECK(report.message == expected);
    break;
  }
}

TEST_CASE("buffers that outlive an iteration are carried over to the next one") {
  // op0 reads the batch and the weight, writes g | op1 updates the weight with g.
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 64_B}), batch = build.existing({.size = 64_B});
  const BufferId gradient = build.alloc({.size = 64_B});
  const VersionId g = build.run({}, {{weight}, {batch}, {gradient, Access::kWrite}})[2];
  build.free(batch);
  const VersionId w2 = build.run({}, {{weight, Access::kReadWrite}, {gradient}})[0];
  build.free(gradient);
  const VersionId w1 = VersionId{0}, in = VersionId{1};
  const Trace trace = build.finish();
  REQUIRE(trace.first_version(weight) == w1);
  PlanWriter plan{trace};
  plan.alloc(w1, 0_B);
  for (std::uint32_t i = 0; i < 3; ++i) {
    if (i > 0) plan.next(i);
    if (i == 1)
      plan.swap_in(in, 64_B);
    else
      plan.alloc(in, 64_B);
    plan.alloc(g, 128_B).run(OpId{0}).free(in).run(OpId{1}).free(g);
  }
  CHECK(execute_both_ways(trace, plan.plan()).message == "");
  plan.drop(w2);
  CHECK_THROWS_WITH(
      execute_on_host(trace, plan.plan()),
      "version 3, which the step leaves behind, is neither on the device nor on the host when the step ends");
}

TEST_CASE("content that begins on the host and is never used is still there when the step ends") {
  TraceBuilder build;
  const BufferId idle = build.existing({.size = 64_B}), read = build.existing({.size = 64_B});
  build.run({}, {{read}});
  build.run({}, {{read}});
  const Trace trace = build.finish();
  const VersionId i = trace.first_version(idle), r = trace.first_version(read);
  PlanWriter plan{trace};
  plan.alloc(r, 0_B).run(OpId{0}).run(OpId{1}).next(1).run(OpId{0}).run(OpId{1});
  CHECK(execute_both_ways(trace, plan.plan()).message == "");
  plan.next(2).swap_in(i, 64_B).run(OpId{0}).run(OpId{1});  // a later iteration still swaps it in
  CHECK(execute_both_ways(trace, plan.plan()).message == "");
  PlanWriter dropped{trace};
  dropped.alloc(i, 64_B).alloc(r, 0_B).run(OpId{0}).run(OpId{1}).drop(i);
  CHECK_THROWS_WITH(
      execute_on_host(trace, dropped.plan()),
      "version 0, which the step leaves behind, is neither on the device nor on the host when the step ends");
}

TEST_CASE("segments may lie anywhere, and a place must be within them") {
  const ThreeOps step = ThreeOps::make();
  const Bytes far{0x7f00'0000'0000};
  const auto plan_at = [&](Bytes c_at) {
    PlanWriter plan{step.trace};
    plan.reserve(far, 8192_B).alloc(step.a, far).run(OpId{0}).alloc(step.b, far + 4096_B).run(OpId{1});
    plan.reserve(0_B, 1024_B).alloc(step.c, c_at).run(OpId{2}).free(step.a).free(step.b);
    return plan.release(far, 8192_B);
  };
  CHECK(execute_both_ways(step.trace, plan_at(512_B).plan()).message == "");
  CHECK_THROWS_WITH(execute_on_host(step.trace, plan_at(513_B).plan()),
                    "alloc version 2 before op 2: [513, +512) is not within what is reserved");
  PlanWriter early{step.trace};
  early.reserve(far, 4096_B).alloc(step.a, far).release(far, 4096_B);
  CHECK_THROWS_WITH(execute_on_host(step.trace, early.plan()),
                    "release [139637976727552, +4096) before op 0: version 0 has its place there");
  PlanWriter again{step.trace};
  again.reserve(far, 4096_B).reserve(far + 4095_B, 1_B);
  CHECK_THROWS_WITH(execute_on_host(step.trace, again.plan()),
                    "reserve [139637976731647, +1) before op 0: part of it is reserved already");
}

TEST_CASE("in plans without addresses, each place has memory of its own") {
  const ThreeOps step = ThreeOps::make();
  PlanWriter plan{step.trace};
  plan.alloc(step.a, kNoAddress).run(OpId{0}).swap_out(step.a).drop(step.a).alloc(step.b, kNoAddress).run(OpId{1});
  plan.swap_in(step.a, kNoAddress).alloc(step.c, kNoAddress).run(OpId{2}).free(step.a).free(step.b);
  CHECK(execute_both_ways(step.trace, plan.plan()).message == "");
}

TEST_CASE("a large plan is scaled down to the available memory, whatever its addresses") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 1_GiB}), b = build.alloc({.size = 1_GiB});
  const VersionId a1 = build.run({}, {{a, Access::kWrite}})[0];
  const VersionId b1 = build.run({}, {{a}, {b, Access::kWrite}})[1];
  const Trace trace = build.finish();
  // 2 GiB in 2^17 words of 8 B: each word represents 16 KiB.
  for (const Bytes gap : {0_B, 512_B, 1_B}) {
    PlanWriter plan{trace};
    plan.alloc(a1, 0_B).run(OpId{0}).alloc(b1, 1_GiB + gap).run(OpId{1});
    const HostReport report = execute_both_ways(trace, plan.plan(), {.arena = 1_MiB});
    CHECK(report.message == "");
    CHECK(report.unit == 16_KiB);
  }
  PlanWriter plan{trace};
  plan.alloc(a1, 0_B).run(OpId{0}).alloc(b1, 1_GiB).run(OpId{1});
  CHECK(execute_both_ways(trace, plan.plan(), {.arena = 16_B}).unit == 1_GiB);
  CHECK_THROWS_WITH(execute_on_host(trace, plan.plan(), {.arena = 15_B}),
                    "the plan needs 16 B of memory, a word for each of the 2 pieces into which its places divide it; "
                    "expected at most 15 B (--arena)");
}

TEST_CASE("sizes and addresses beyond any memory are refused before memory is allocated") {
  const ThreeOps step = ThreeOps::make();
  const auto with_place = [&](Bytes offset, Bytes size) {
    return Plan{{{Verb::kAlloc, OpId{0}, step.a.value(), offset, size}}};
  };
  const Bytes far{std::int64_t{1} << 62};
  CHECK_THROWS_WITH(execute_on_host(step.trace, with_place(0_B, far)),
                    "alloc version 0 before op 0: [0, +4611686018427387904) is no range of addresses");
  CHECK_THROWS_WITH(execute_on_host(step.trace, with_place(Bytes{-2}, 4096_B)),
                    "alloc version 0 before op 0: [-2, +4096) is no range of addresses");

  TraceBuilder build;
  const BufferId large = build.alloc({.size = far - 1_B}), other = build.alloc({.size = 1_B});
  const VersionId a = build.run({}, {{large, Access::kWrite}})[0];
  const VersionId b = build.run({}, {{other, Access::kWrite}})[0];
  const Trace trace = build.finish();
  PlanWriter plan{trace};
  plan.alloc(a, kNoAddress).alloc(b, kNoAddress);
  CHECK_THROWS_WITH(execute_on_host(trace, plan.plan()),
                    "alloc version 1 before op 0: all places together hold more than 2^62 bytes");
}

}  // namespace tidepool::host_backend_test
