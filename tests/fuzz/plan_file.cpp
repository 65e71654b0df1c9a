// Any bytes are either a plan file that can be written again without loss, or refused with a position. A plan that was
// read is executed, even if it is wrong. The execution ends with a report or an error. The program that a device would
// get for the plan is sound, or refused with the same error.
#include "simulator/plan_file.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fuzz/mutations/mutations.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"
#include "validator/execution/device_program.hpp"
#include "validator/host/host_backend.hpp"

namespace {

using namespace tidepool;

/// A step with two streams, a weight and a batch from before the step, updates in place, a view, an op with
/// several outputs, and a random op. The batch ends in the step.
Trace make_trace() {
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId weight = build.existing({.size = 4096_B}), batch = build.existing({.size = 512_B});
  const BufferId a = build.alloc({.size = 1024_B}), b = build.alloc({.size = 100_B, .stream = side});
  const OpId first = (build.run({}, {{weight}, {batch}, {a, Access::kWrite}}), build.last_op());
  build.free(batch);
  build.run({.stream = side, .random = true}, {{a}, {b, Access::kWrite}});
  build.order(first, build.last_op());
  build.run({}, {{a, Access::kView}});
  const BufferId c = build.alloc({.size = 0_B}), d = build.alloc({.size = 2048_B});
  build.run({}, {{a, Access::kReadWrite}, {c, Access::kWrite}, {d, Access::kWrite}});
  build.free(a);
  build.run({}, {{weight, Access::kReadWrite}, {b}, {d}});
  return build.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  PlanFile file;
  try {
    file = parse_plan(Input{"fuzz.plan", bytes});
    const std::string text = plan_text(file);
    if (plan_text(parse_plan(Input{"again.plan", text})) != text) std::abort();
  } catch (const InputError& error) {
    if (std::string_view{error.what()}.substr(0, 9) != "fuzz.plan") std::abort();
    return 0;
  }
  static const Trace trace = make_trace();
  HostOptions options;
  options.threads = false;
  options.arena = 64_KiB;
  options.copy_on_write = file.spec.assume.copy_on_write;
  const auto refusal = [](auto execute) -> std::string {
    try {
      execute();
    } catch (const InputError& error) {
      return error.what();
    } catch (const PlanError& error) {
      return error.what();
    }
    return "";
  };
  const std::string host = refusal([&] { execute_on_host(trace, file.plan, options); });
  const std::string device = refusal([&] {
    require_sound(make_program(trace, file.plan,
                               {.copy_on_write = options.copy_on_write, .least_unit = 1_B, .aim = options.arena}));
  });
  if (host != device) std::abort();
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tidepool::fuzz::mutate_in_place(data, size, most, seed, tidepool::fuzz::mutate_json);
}
