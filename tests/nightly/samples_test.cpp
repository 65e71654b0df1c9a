// The plans of all pools, policies, samples and capacities, executed on the host with concurrent lanes, and on the
// fake device with another seed for each plan. This takes long: cmake --build build --target nightly runs it. One
// sample alone: build/tidepool_nightly -c resnet50.
#include "tests/fake_cuda.hpp"
#include "tests/sample_runs.hpp"
#include "validator/cuda/run_program.hpp"
#include "validator/execution/device_program.hpp"
#include "validator/host/host_backend.hpp"

using namespace tidepool;

namespace {

void check_sample(const std::string& name) {
  int order = 0, ended = 0;
  tests::for_sample_runs(name, 1, [&](const Trace& trace, const RunSpec& spec, const Result& result) {
    ++ended;
    const ExecutionReport host = execute_on_host(trace, result.realised, {.arena = 512_KiB});
    INFO(host.message);
    REQUIRE(host.outcome == ExecutionOutcome::kOk);
    const DeviceProgram program = make_program(
        trace, result.realised, {.copy_on_write = spec.assume.copy_on_write, .least_unit = 1_B, .aim = 512_KiB});
    const tests::FakeDriver fake{fmt::format("seed={}", order++)};
    const ExecutionReport device = cuda::run_program(fake.gpu(), trace, result.realised, program, {});
    INFO(device.message);
    REQUIRE(device.outcome == ExecutionOutcome::kOk);
    REQUIRE(device.read == host.read);
    REQUIRE(device.peak == result.totals.peak);
  });
  fmt::print("{}: {} plans\n", name, ended);
}

}  // namespace

TEST_CASE("every plan keeps its bytes on concurrent lanes, and on a device in any order") {
  for (const std::string& name : tests::kSamples) DYNAMIC_SECTION(name) {
      check_sample(name);
    }
}
