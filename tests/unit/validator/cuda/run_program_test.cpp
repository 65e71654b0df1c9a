// Plans as programs for a device. The fake driver executes them in any order that events allow.
#include "validator/cuda/run_program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/fake_cuda.hpp"
#include "tests/machines.hpp"
#include "tests/plan_writer.hpp"
#include "tests/quick_spec.hpp"
#include "tests/random_trace.hpp"
#include "tests/three_ops.hpp"
#include "traces/builder.hpp"
#include "validator/execution/device_program.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::run_program_test {

using tests::FakeDriver;
using tests::PlanWriter;

namespace {

/// b takes the place of a (4 KiB), which is swapped in elsewhere.
struct SmallStep : tests::ThreeOps {
  SmallStep() : ThreeOps{4096_B, {1_ms, 1_ms, 1_ms}} {}
  Plan swapped() const { return ThreeOps::swapped(0_B, 4096_B, 8192_B); }
};

ExecutionReport execute_on(const std::string& settings, const Trace& trace, const Plan& plan,
                           const DeviceProgram& program, const cuda::RunOptions& options = {}) {
  const FakeDriver device{settings};
  return cuda::run_program(device.gpu(), trace, plan, program, options);
}

/// Checks that two executions of a plan agree in everything but time, also in the message about wrong bytes.
void check_same(const ExecutionReport& device, const ExecutionReport& host) {
  CHECK(device.message == host.message);
  CHECK(device.outcome == host.outcome);
  CHECK(device.corrupt == host.corrupt);
  CHECK(device.read == host.read);
  CHECK(device.peak == host.peak);
}

}  // namespace

TEST_CASE("a device gives the host's result in any order that events allow") {
  const SmallStep step;
  const DeviceProgram program = make_program(step.trace, step.swapped(), {.least_unit = 1_B});
  CHECK(program.device_words == 4096 + 4096 + 512);
  CHECK(program.host_words == 4096);
  HostOptions in_order;
  in_order.threads = false;
  const ExecutionReport host = execute_on_host(step.trace, step.swapped(), in_order);
  CHECK(host.outcome == ExecutionOutcome::kOk);
  for (int seed = 0; seed < 8; ++seed)
    for (const bool graph : {false, true}) {
      INFO("seed " << seed << (graph ? " as a graph" : ""));
      check_same(execute_on(fmt::format("seed={}", seed), step.trace, step.swapped(), program, {.graph = graph}), host);
    }
}

TEST_CASE("a device reports the same errors as the host, word for word") {
  const SmallStep step;
  PlanWriter overlap{step.trace};  // b takes the last 512 bytes of a
  overlap.alloc(step.a, 0_B).run(OpId{0}).alloc(step.b, 3584_B).run(OpId{1}).alloc(step.c, 8192_B).run(OpId{2});
  HostOptions in_order;
  in_order.threads = false;
  const ExecutionReport host = execute_on_host(step.trace, overlap.plan(), in_order);
  CHECK_THAT(host.message, ContainsSubstring("run op 2 before op 2: reads version 0 (buffer 0): byte 3584 is wrong;"));
  CHECK_THAT(host.message, ContainsSubstring("which is the content of version 1 (buffer 1)") ||
                               ContainsSubstring("no content of the program"));
  const DeviceProgram program = make_program(step.trace, overlap.plan(), {.least_unit = 1_B});
  for (int seed = 0; seed < 8; ++seed)
    check_same(execute_on(fmt::format("seed={}", seed), step.trace, overlap.plan(), program), host);
}

TEST_CASE("a lost event corrupts bytes in some order, and the op that reads them is named") {
  const SmallStep step;
  const Plan plan = step.swapped();
  const DeviceProgram program = make_program(step.trace, plan, {.least_unit = 1_B});
  std::size_t waits = 0;
  std::vector<std::string> found;
  for (std::size_t lost = 0; lost < program.commands.size(); ++lost) {
    if (program.commands[lost].kind != DeviceCommandKind::kWait) continue;
    ++waits;
    DeviceProgram mutant = program;
    mutant.commands.erase(mutant.commands.begin() + static_cast<std::ptrdiff_t>(lost));
    std::string message;
    for (int seed = 0; seed < 8 && message.empty(); ++seed)
      message = execute_on(fmt::format("seed={}", seed), step.trace, plan, mutant).message;
    if (!message.empty()) found.push_back(message.substr(0, message.find(" is wrong")));
  }
  // Five waits are needed: copy out after op 0, the end of a's first place after copy out, op 1 after that end, op 2
  // after copy in, the end of a's second place after op 2. Copy in waits for copy out and for op 1, which follows copy
  // out, so it needs only one of these two waits. The last two of the nine waits follow from the five needed ones.
  CHECK(waits == 9);
  CHECK(found == std::vector<std::string>(5, "run op 2 before op 2: reads version 0 (buffer 0): byte 0"));
}

TEST_CASE("the plans of every registered policy are right in any order of the device") {
  int ended = 0;
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 6 : 1); ++seed) {
    const Trace trace = tests::random_trace(seed, 90);
    for (const PolicyInfo* policy : all_policies()) {
      RunSpec spec{.pool = seed % 3 == 0 ? "ideal" : "best-fit",
                   .policy = tests::quick_spec(*policy),
                   .machine = tests::uneven(),
                   .iterations = seed % 2 == 0 ? 1 : 2};
      spec.capacity = trace.ideal_peak() / 10 * (seed % 4 < 2 ? 7 : 9);
      const Result result = simulate(trace, spec, true);
      if (result.outcome != Outcome::kOk) continue;
      ++ended;
      const DeviceProgram program = make_program(trace, result.realised, {.least_unit = 1_B, .aim = 1_MiB});
      HostOptions in_order{.arena = 1_MiB};
      in_order.threads = false;
      const ExecutionReport host = execute_on_host(trace, result.realised, in_order);
      for (int order = 0; order < 6; ++order) {
        INFO(fmt::format("seed {} policy {} order {}", seed, policy->name, order));
        check_same(execute_on(fmt::format("seed={}", order), trace, result.realised, program, {.graph = order == 5}),
                   host);
      }
    }
  }
  CHECK(ended >= (tests::kOptimised ? 60 : 10));
}

TEST_CASE("a device without memory for a graph is used again afterwards") {
  const SmallStep step;
  const DeviceProgram program = make_program(step.trace, step.swapped(), {.least_unit = 1_B});
  const FakeDriver device{"seed=1,graphs=0"};
  const Bytes free = device.gpu().free_memory();
  const auto run = [&](bool graph) {
    return cuda::run_program(device.gpu(), step.trace, step.swapped(), program, {.graph = graph});
  };
  const ExecutionReport refused = run(true);
  CHECK(refused.outcome == ExecutionOutcome::kOutOfMemory);
  CHECK_THAT(refused.message, ContainsSubstring(" commands were given: cuGraphInstantiateWithFlags: "
                                                "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"));
  CHECK_FALSE(device.gpu().abandoned());
  CHECK(device.gpu().free_memory() == free);
  CHECK(run(false).outcome == ExecutionOutcome::kOk);
}

TEST_CASE("a timed run takes as long as its critical path") {
  // A copy of 4096 B on the fake takes 10 us + 4096 / 12 ns = 10,341.33 ns. a must have been swapped out before op
  // 1 may write. Its swap-in waits for op 1, and op 2 waits for the swap-in. So both copies run alone.
  const SmallStep step;
  const DeviceProgram program = make_program(step.trace, step.swapped(), {.content = false});
  for (const bool graph : {false, true}) {
    const ExecutionReport timed =
        execute_on("seed=1", step.trace, step.swapped(), program, {.timed = true, .graph = graph});
    CHECK(timed.message == "");
    REQUIRE(timed.measured);
    CHECK(std::abs(timed.measured->count() - (3'000'000 + 10'341 + 10'341)) <= 1'000);
    REQUIRE(timed.times.size() == 5);
    CHECK(timed.times[0].op == OpId{0});
    CHECK(std::abs((timed.times[3].end - timed.times[3].begin).count() - 10'341) <= 2);
    CHECK(timed.times[3].kind == TaskKind::kSwapOut);
    CHECK(timed.times[4].kind == TaskKind::kSwapIn);
  }
}

TEST_CASE("a device that refuses or fails ends the execution with an outcome and a message") {
  const SmallStep step;
  const Plan plan = step.swapped();
  const DeviceProgram program = make_program(step.trace, plan, {});
  CHECK(program.device_words == 512 + 512 + 64);
  const ExecutionReport no_memory = execute_on("memory=4096", step.trace, plan, program);
  CHECK(no_memory.outcome == ExecutionOutcome::kOutOfMemory);
  CHECK(no_memory.message ==
        "the device has no 8.5 KiB for the arena; 4 KiB of 4 KiB are free: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY "
        "(out of memory)");
  const ExecutionReport no_pinned = execute_on("pinned=4095", step.trace, plan, program);
  CHECK(no_pinned.outcome == ExecutionOutcome::kOutOfMemory);
  CHECK(no_pinned.message ==
        "the host has no 4 KiB of pinned memory for copies: cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  const ExecutionReport lost = execute_on("die=9", step.trace, plan, program);
  CHECK(lost.outcome == ExecutionOutcome::kDeviceError);
  CHECK_THAT(lost.message, ContainsSubstring("commands were given: cu") &&
                               ContainsSubstring(": CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)"));
  const ExecutionReport stuck = execute_on("hang=2", step.trace, plan, program, {.patience = 20_ms});
  CHECK(stuck.outcome == ExecutionOutcome::kStuck);
  CHECK_THAT(stuck.message, ContainsSubstring("still at work"));
  CHECK_THAT(stuck.message, ContainsSubstring("d2h"));
  CHECK_THROWS_WITH(FakeDriver{"devices=0"}, "there is no device 0; the driver knows 0");
}

TEST_CASE("a program that accesses addresses outside of its memory is refused before it is executed") {
  const SmallStep step;
  DeviceProgram program = make_program(step.trace, step.swapped(), {});
  program.device_words -= 1;
  CHECK_THROWS_WITH(require_sound(program), ContainsSubstring("touches words [1024, 1088) of 1087 on the device"));
  program.device_words += 1;
  program.commands.push_back({DeviceCommandKind::kWait, 0, program.events});
  CHECK_THROWS_WITH(require_sound(program), ContainsSubstring("a command on stream 0 has number"));
}

TEST_CASE("a missing driver is reported") {
  CHECK_THROWS_WITH(cuda::Driver{"libnothing.so.1"}, ContainsSubstring("libnothing.so.1: cannot open shared object "
                                                                       "file: No such file or directory; no NVIDIA "
                                                                       "driver is installed here"));
}

}  // namespace tidepool::run_program_test
