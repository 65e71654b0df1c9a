// Every plan that any policy makes, on real memory: what the clocks and addresses of a simulation cannot show.
#include "validator/host_backend.hpp"

#include <fmt/format.h>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

using namespace tidepool;
using tidepool::tests::random_trace;

namespace {

void check_bytes(const Trace& trace, const RunSpec& spec, bool threads) {
  const Result result = simulate(trace, spec, true);
  if (result.outcome != Outcome::kOk) return;
  CHECK(replay(trace, spec, result.realised) == result.totals);
  HostOptions options;
  options.copy_on_write = spec.assume.copy_on_write;
  options.threads = threads;
  options.arena = 64_KiB;  // coarse: what matters is where things overlap
  const HostReport report = execute_on_host(trace, result.realised, options);
  CHECK(report.message == "");
  CHECK(report.outcome == HostOutcome::kOk);
  CHECK(report.corrupt == 0_B);
  CHECK(report.peak == result.totals.peak);
}

RunSpec spec_at(const Trace& trace, double fraction) {
  RunSpec spec;
  spec.capacity = Bytes{static_cast<std::int64_t>(fraction * static_cast<double>(trace.ideal_peak().count()))};
  spec.machine.name = "test";
  return spec;
}

}  // namespace

TEST_CASE("every plan of every policy leaves the bytes that the program without it would leave") {
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    const Trace trace = random_trace(seed, 40 + static_cast<int>(seed - 100) * 40);
    for (const PoolInfo* pool : all_pools())
      for (const PolicyInfo* policy : all_policies())
        for (const double fraction : {0.35, 0.5, 0.7, 1.0, 100.0})
          for (const char* assume : {"", "simrd"}) {
            INFO(fmt::format("seed {} pool {} policy {} capacity {}x {}", seed, pool->name, policy->name, fraction,
                             assume));
            RunSpec spec = spec_at(trace, fraction);
            spec.pool = pool->name;
            spec.policy = policy->name;
            spec.assume = Assumptions::find(assume);
            check_bytes(trace, spec, false);
          }
  }
}

TEST_CASE("lanes that run at the same time leave the same bytes, over several iterations too") {
  for (std::uint64_t seed = 200; seed < 204; ++seed) {
    const Trace trace = random_trace(seed, 150);
    for (const PolicyInfo* policy : all_policies())
      for (const double fraction : {0.5, 0.8})
        for (const int iterations : {1, 3}) {
          INFO(fmt::format("seed {} policy {} capacity {}x iterations {}", seed, policy->name, fraction, iterations));
          RunSpec spec = spec_at(trace, fraction);
          spec.policy = policy->name;
          spec.iterations = iterations;
          check_bytes(trace, spec, true);
        }
  }
}
