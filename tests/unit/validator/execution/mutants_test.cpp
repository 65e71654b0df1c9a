// Typical errors of plans and backends, made on purpose. Each must be found, with the op that reads the wrong bytes.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "simulator/policy.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/fake_cuda.hpp"
#include "tests/plan_writer.hpp"
#include "traces/builder.hpp"
#include "validator/cuda/run_program.hpp"
#include "validator/execution/device_program.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::mutants_test {

using tests::PlanWriter;

namespace {

/// op0 writes a | op1 reads a, writes b | op2 updates a in place | op3 reads a and b, writes c. c is the output.
struct FourOps {
  VersionId a0, b, a1, c;
  Trace trace = make();

  Trace make() {
    TraceBuilder build;
    const BufferId first = build.alloc({.size = 4096_B}), second = build.alloc({.size = 4096_B});
    const BufferId third = build.alloc({.size = 512_B});
    a0 = build.run({.duration = 1_ms}, {{first, Access::kWrite}})[0];
    b = build.run({.duration = 1_ms}, {{first}, {second, Access::kWrite}})[1];
    a1 = build.run({.duration = 1_ms}, {{first, Access::kReadWrite}})[0];
    c = build.run({.duration = 1_ms}, {{first}, {second}, {third, Access::kWrite}})[2];
    build.free(first), build.free(second);
    return build.finish();
  }

  /// b is swapped out while a is updated, and swapped in at `back`.
  Plan swapped(Bytes back) const {
    PlanWriter plan{trace};
    plan.alloc(a0, 0_B).run(OpId{0}).alloc(b, 4096_B).run(OpId{1}).swap_out(b).drop(b);
    plan.run(OpId{2}).alloc(c, 12288_B).swap_in(b, back).run(OpId{3}).free(a1).free(b);
    return plan.plan();
  }

  /// b is dropped and recomputed, and so is its input a0, because op 2 has replaced a0.
  Plan recomputed() const {
    PlanWriter plan{trace};
    plan.alloc(a0, 0_B).run(OpId{0}).alloc(b, 4096_B).run(OpId{1}).drop(b).run(OpId{2});
    plan.alloc(a0, 8192_B).run(OpId{0}).alloc(b, 4096_B).run(OpId{1}).drop(a0);
    plan.alloc(c, 12288_B).run(OpId{3}).free(a1).free(b);
    return plan.plan();
  }
};

/// The message of the first check that fails in one of eight orders of a device, or "".
std::string found_on_device(const Trace& trace, const Plan& plan, const DeviceProgram& program) {
  for (int order = 0; order < 8; ++order) {
    const tests::FakeDriver device{fmt::format("seed={}", order)};
    const ExecutionReport run = cuda::run_program(device.gpu(), trace, plan, program, {});
    if (run.outcome != ExecutionOutcome::kOk) return run.message;
  }
  return "";
}

std::string found_on_host(const Trace& trace, const Plan& plan) {
  HostOptions in_order;
  in_order.threads = false;
  return execute_on_host(trace, plan, in_order).message;
}

/// Removes every wait of `stream` for events of the stream `recorder`.
DeviceProgram without_waits(DeviceProgram program, std::uint32_t stream, std::uint32_t recorder) {
  std::vector<std::uint32_t> recorded_by(program.events);
  std::vector<DeviceCommand> kept;
  for (const DeviceCommand& command : program.commands) {
    if (command.kind == DeviceCommandKind::kRecord) recorded_by[command.number] = command.stream;
    if (command.kind != DeviceCommandKind::kWait || command.stream != stream || recorded_by[command.number] != recorder)
      kept.push_back(command);
  }
  CHECK(kept.size() < program.commands.size());
  program.commands = kept;
  return program;
}

/// op0 writes a | op1 updates a, writes b | op2 writes c, which is freed | op3 reads a and b. All have the same size.
struct MixedOp {
  VersionId a0, a1, b, c;
  Trace trace = make();

  Trace make() {
    TraceBuilder build;
    const BufferId first = build.alloc({.size = 4096_B}), second = build.alloc({.size = 4096_B});
    a0 = build.run({.duration = 1_ms}, {{first, Access::kWrite}})[0];
    const std::vector<VersionId> made =
        build.run({.duration = 1_ms}, {{first, Access::kReadWrite}, {second, Access::kWrite}});
    a1 = made[0], b = made[1];
    const BufferId third = build.alloc({.size = 4096_B});
    c = build.run({.duration = 1_ms}, {{third, Access::kWrite}})[0];
    build.free(third);
    build.run({.duration = 1_ms}, {{first}, {second}});
    build.free(first), build.free(second);
    return build.finish();
  }

  RunSpec spec() const { return {.pool = "best-fit", .capacity = 8192_B}; }

  /// b is dropped for c and recomputed by op0 and op1. To make room for this, a1 is dropped too.
  /// @param early  a0 is dropped before op1 updates it in place, to make room for b
  Plan recomputed(bool early) const {
    PlanWriter plan{trace};
    plan.alloc(a0, 0_B).run(OpId{0}).alloc(b, 4096_B).run(OpId{1}).drop(b).alloc(c, 4096_B).run(OpId{2}).free(c);
    plan.alloc(a0, 4096_B).run(OpId{0}).drop(a1);
    if (early) plan.drop(a0);
    plan.alloc(b, early ? 4096_B : 0_B).run(OpId{1});
    plan.run(OpId{3}).free(a1).free(b);
    return plan.plan();
  }
};

/// Drops a1 or b for c, which is allowed. When that version must be recomputed, the policy releases the driver's lock
/// on a0, which op1 is about to replace in place, and drops a0. So the fault is in the driver's own state.
class LetsTheParentGo final : public Policy {
 public:
  LetsTheParentGo(const MixedOp& step, VersionId first) : step_{step}, first_{first} {}

  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    const VersionId victim = request.version == step_.c ? first_ : step_.a0;
    const_cast<VersionState&>(view.state(victim)).locks = 0;
    out.push_back({Verb::kDrop, {}, victim.value(), {}, {}});
  }

 private:
  const MixedOp& step_;
  VersionId first_;
};

}  // namespace

TEST_CASE("without mutants the checks find no fault") {
  const FourOps step;
  for (const Plan& plan : {step.swapped(8192_B), step.recomputed()}) {
    CHECK(found_on_host(step.trace, plan) == "");
    CHECK(found_on_device(step.trace, plan, make_program(step.trace, plan, {})) == "");
  }
}

TEST_CASE("mutant: a place is given away before the swap-out of its content has ended") {
  const FourOps step;
  const Plan plan = step.swapped(8192_B);
  const DeviceProgram program = make_program(step.trace, plan, {});
  const std::string found =
      found_on_device(step.trace, plan, without_waits(program, program.lanes.upkeep(), program.lanes.d2h()));
  CHECK_THAT(found, ContainsSubstring("run op 3 before op 3: reads version 1 (buffer 1)"));
  CHECK_THAT(found, ContainsSubstring("which is cleared memory"));
}

TEST_CASE("mutant: two places overlap by 512 bytes") {
  const FourOps step;
  const Plan plan = step.swapped(3584_B);  // over the last 512 bytes of a, which op 3 reads
  const std::string expected = "run op 3 before op 3: reads version 2 (buffer 0): byte 3584 is wrong";
  CHECK_THAT(found_on_host(step.trace, plan), ContainsSubstring(expected));
  CHECK_THAT(found_on_device(step.trace, plan, make_program(step.trace, plan, {})), ContainsSubstring(expected));
  RunSpec spec;
  spec.capacity = kNoLimit;
  CHECK_THROWS_WITH(replay(step.trace, spec, plan), "swap in version 1 before op 3: it would overlap version 2");
}

TEST_CASE("mutant: a version that was replaced is recomputed from its replacement") {
  const FourOps step;
  const Plan plan = step.recomputed();
  DeviceProgram program = make_program(step.trace, plan, {});
  DeviceStep* again = nullptr;
  for (DeviceStep& each : program.steps)
    if (each.kind == TaskKind::kRun && each.op == OpId{1}) again = &each;
  program.stretches[again->first].word = 0;  // the place of a instead of the place of the recomputed a0
  CHECK_THAT(found_on_device(step.trace, plan, program),
             ContainsSubstring("run op 1 before op 3: reads version 0 (buffer 0): byte 0 is wrong") &&
                 ContainsSubstring("which is the content of version 2 (buffer 0)"));

  PlanWriter stale{step.trace};  // a plan with this mistake is refused before any op runs
  stale.alloc(step.a0, 0_B).run(OpId{0}).alloc(step.b, 4096_B).run(OpId{1}).drop(step.b).run(OpId{2});
  stale.alloc(step.b, 4096_B).run(OpId{1});
  CHECK_THROWS_WITH(execute_on_host(step.trace, stale.plan()),
                    "run op 1 before op 3: version 0 has no place to be read from");
}

TEST_CASE("mutant: the lock on a version that a run replaces in place is released before all its outputs have places") {
  const MixedOp step;
  CHECK_NOTHROW(replay(step.trace, step.spec(), step.recomputed(false)));
  CHECK(found_on_host(step.trace, step.recomputed(false)) == "");
  const std::string found = "run op 1 before op 3: its input, version 0 of buffer 0, is not there";
  CHECK_THROWS_WITH(replay(step.trace, step.spec(), step.recomputed(true)), found);
  CHECK_THROWS_WITH(execute_on_host(step.trace, step.recomputed(true)),
                    "run op 1 before op 3: version 1 has no place to be written to");

  for (const VersionId first : {step.b, step.a1}) {
    std::vector<std::unique_ptr<Policy>> mutant;
    mutant.push_back(std::make_unique<LetsTheParentGo>(step, first));
    RunSpec spec = step.spec();
    spec.overhead_limit.reset();
    const Result result = simulate_under(step.trace, spec, std::move(mutant), false);
    CHECK(result.outcome == Outcome::kError);
    CHECK(result.message == "the plan of this run cannot be executed: " + found);
  }
}

TEST_CASE("mutant: an event between a copy and the op that needs it is lost") {
  const FourOps step;
  const Plan plan = step.swapped(8192_B);
  const DeviceProgram program = make_program(step.trace, plan, {});
  const std::uint32_t compute = 0;
  CHECK_THAT(found_on_device(step.trace, plan, without_waits(program, compute, program.lanes.h2d())),
             ContainsSubstring("run op 3 before op 3: reads version 1 (buffer 1): byte 0 is wrong") &&
                 ContainsSubstring("which is no content of the program"));  // fresh memory has arbitrary content
  CHECK_THAT(found_on_device(step.trace, plan, without_waits(program, program.lanes.d2h(), compute)),
             ContainsSubstring("run op 3 before op 3: reads version 1 (buffer 1)"));
}

}  // namespace tidepool::mutants_test
