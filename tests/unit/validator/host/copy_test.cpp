// Copies within the device in closed form: such a copy keeps the input of an update in place, which can then run again.
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/plan_writer.hpp"
#include "traces/builder.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::copy_test {

TEST_CASE("an update is recomputed after the last op, beside its input, on the stream of its op") {
  // op0 writes a on the first stream | op1 changes it on the second | op2 is busy on the first. Copying a within the
  // device takes 1 us: 500,000 B at 500 GB/s.
  TraceBuilder build{{"first", "second"}};
  const BufferId a = build.alloc({.size = 500'000_B});
  build.run({.duration = 2_us}, {{a, Access::kWrite}});
  const VersionId written = build.current(a);
  build.run({.stream = StreamId{1}, .duration = 4_us}, {{a, Access::kReadWrite}});
  const VersionId changed = build.current(a);
  build.run({.duration = 3_us}, {});
  build.order(OpId{0}, OpId{1});
  const Trace trace = build.finish();

  const RunSpec spec{.pool = "ideal", .policy = "none", .capacity = 1_MiB, .machine = tests::byte_per_nano()};
  tests::PlanWriter plan{trace};
  plan.alloc(written, 0_B).run(OpId{0}).alloc(changed, 500'000_B).copy(changed).run_to(OpId{2});
  plan.drop(changed).alloc(changed, 500'000_B).copy(changed).run(OpId{1});

  // The second stream waits for op0 (2 us), copies (1 us) and runs op1 (4 us), then copies and runs op1 again (5 us).
  // On the first stream, op2 ends at 5 us.
  CHECK(replay(trace, spec, plan.plan()).makespan == 12_us);
  CHECK(execute_on_host(trace, plan.plan(), {.threads = true}).outcome == HostOutcome::kOk);
}

}  // namespace tidepool::copy_test
