#include "validator/host/host_timing.hpp"

#include <algorithm>
#include <memory>
#include <thread>

#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "tests/skip.hpp"
#include "tests/three_ops.hpp"
#include "traces/builder.hpp"

namespace tidepool::host_timing_test {

using tests::PlanWriter;

namespace {

/// a (1 MiB) is swapped out beside op 1, and swapped in after op 1, for op 2.
struct BusyStep : tests::ThreeOps {
  BusyStep() : ThreeOps{1_MiB, {1_ms, 4_ms, 2_ms}} {}
  Plan swapped() const { return ThreeOps::swapped(1_MiB, 0_B, 2_MiB); }
};

const TaskTime& find(const ExecutionReport& report, TaskKind kind) {
  const auto found =
      std::find_if(report.times.begin(), report.times.end(), [&](const TaskTime& time) { return time.kind == kind; });
  REQUIRE(found != report.times.end());
  return *found;
}

}  // namespace

TEST_CASE("ops on the host take exactly their time, however late their threads wake up") {
  constexpr int kOps = 600;  // more than a lane can queue
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 4096_B});
  for (int i = 0; i < kOps; ++i) build.run({.duration = 10_us}, {{weight, Access::kReadWrite}});
  const Trace trace = build.finish();
  PlanWriter plan{trace};
  plan.alloc(VersionId{0}, 0_B).run_to(OpId{kOps - 1});
  for (const int scale : {1, 2}) {
    const ExecutionReport report = time_on_host(trace, plan.plan(), {.time_scale = static_cast<double>(scale)});
    CHECK(report.outcome == ExecutionOutcome::kOk);
    CHECK(report.measured >= 10_us * kOps);
    CHECK(report.wall >= 10_us * (kOps * scale));
    REQUIRE(report.times.size() == kOps);
    CHECK(report.times.back().end == 10_us * kOps);
    CHECK(report.read == 0_B);
  }
}

TEST_CASE("an op of another stream begins on the host when the ops that it waits for have ended") {
  TraceBuilder build{{"0", "1"}};
  const BufferId x = build.alloc({.size = 4096_B}), y = build.alloc({.size = 4096_B});
  const VersionId x1 = build.run({.stream = StreamId{0}, .duration = 300_us}, {{x, Access::kWrite}})[0];
  const VersionId y1 = build.run({.stream = StreamId{1}, .duration = 100_us}, {{y, Access::kWrite}})[0];
  build.run({.stream = StreamId{1}, .duration = 200_us}, {{x}, {y}});
  const Trace trace = build.finish();
  PlanWriter plan{trace};
  plan.alloc(x1, 0_B).run(OpId{0}).alloc(y1, 4096_B).run(OpId{1}).run(OpId{2});
  const ExecutionReport report = time_on_host(trace, plan.plan(), {});
  CHECK(report.measured >= 500_us);
  REQUIRE(report.times.size() == 3);
  CHECK(report.times[1].begin == 0_us);
  CHECK(report.times[2].begin == 300_us);
  CHECK(report.times[2].end == 500_us);
}

TEST_CASE("copies on the host begin after the tasks they wait for, and take the planned or the measured time") {
  const BusyStep step;
  HostTimingOptions options;
  options.machine.d2h = options.machine.h2d = {BytesPerSecond{1'048'576'000}, 0_us};  // a copy of a takes 1 ms
  const auto links = std::make_unique<HostLinks>();
  SECTION("as planned") {}
  SECTION("as long as moving its bytes takes") { options.links = links.get(); }
  const ExecutionReport report = time_on_host(step.trace, step.swapped(), options);
  CHECK(report.outcome == ExecutionOutcome::kOk);
  CHECK(report.peak == 1_MiB + 4096_B + 512_B);
  const TaskTime &out = find(report, TaskKind::kSwapOut), &in = find(report, TaskKind::kSwapIn);
  CHECK(out.begin >= 1_ms);
  CHECK(in.begin >= 5_ms);
  if (!options.links) CHECK(in.end - in.begin >= 1_ms);
  CHECK(in.end > in.begin);
  REQUIRE(report.times[2].op == OpId{2});
  CHECK(report.times[2].begin == in.end);
  CHECK(report.times[2].end == in.end + 2_ms);
  CHECK(report.measured >= report.times[2].end);
  REQUIRE(report.lanes.size() == 4);
  CHECK(report.lanes[1].bytes == 1_MiB);
  CHECK(report.lanes[0].busy == 7_ms);
}

TEST_CASE("the two directions of the host's link run on different cores if there are two") {
  const auto cores_of = [](bool is_out) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    std::thread{[&] {
      HostLinks::take_core(is_out);
      sched_getaffinity(0, sizeof cores, &cores);
    }}.join();
    return cores;
  };
  const cpu_set_t out = cores_of(true), in = cores_of(false);
  cpu_set_t allowed, both;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  if (CPU_COUNT(&out) != 1) return tests::skip("this system does not keep a thread on a core");
  CHECK(CPU_COUNT(&in) == 1);
  CPU_OR(&both, &out, &in);
  CHECK(CPU_COUNT(&both) == std::min(2, CPU_COUNT(&allowed)));
}

TEST_CASE("a plan that no memory could execute is refused before its time is measured") {
  const BusyStep step;
  PlanWriter plan{step.trace};
  plan.alloc(step.a, 0_B).run(OpId{0}).drop(step.a).alloc(step.b, 1_MiB).run(OpId{1}).alloc(step.c, 2_MiB).run(OpId{2});
  CHECK_THROWS_WITH(time_on_host(step.trace, plan.plan(), {}),
                    "run op 2 before op 2: version 0 has no place to be read from");
}

}  // namespace tidepool::host_timing_test
