// Any bytes as a table of lifetimes: read or refused, nothing else. Tables that check() accepts can be planned.
#include "simulator/registry.hpp"
#include "simulator/solvers/packing/lifetimes.hpp"
#include "traces/base/error.hpp"
#include "traces/import/readers.hpp"

using namespace tidepool;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Input input{"fuzz.csv", {reinterpret_cast<const char*>(data), size}};
  try {
    read_interval_csv(input);
  } catch (const InputError&) {
  }
  try {
    const LifetimeTable table = read_lifetimes(input, LifetimeColumns::kAll);
    for (const Bytes alignment : {1_B, 512_B}) {
      const Instance instance = instance_of(table, alignment);
      check(instance);
      const PoolInfo& planner = find_pool("one-pass");
      const Layout layout = planner.plan(Options{planner.name, planner.options, {}})->plan(instance, {});
      if (verified_height(instance, layout.offsets) != layout.height) __builtin_trap();
    }
  } catch (const InputError&) {
  }
  return 0;
}
