// Planners that usually ignore small buffers must plan with them here, since random traces have no others.
#include <fmt/format.h>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "tests/random_trace.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::small_tensors_test {

namespace {

const Machine kMachine = tests::uneven();

}  // namespace

TEST_CASE("planners that plan for small tensors too read the right bytes") {
  int runs = 0, ended = 0;
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 8 : 3); ++seed) {
    const Trace trace = tests::random_trace(seed, 60 + static_cast<int>(seed) * 20);
    for (const char* policy :
         {"pooch(least=1B,effort=25)", "capuchin(least=1B)", "flashneuron", "g10", "swapadvisor(with=swap,effort=12)",
          "autoswap(least=1B,effort=12)", "tide(least=1B,effort=20)"})
      for (const char* assume : {"", "simrd"})
        for (const int iterations : {1, 3})
          for (const double fraction : {0.4, 0.6, 0.8, 0.95}) {
            INFO(fmt::format("seed {} policy {} assume '{}' iterations {} capacity {}x", seed, policy, assume,
                             iterations, fraction));
            RunSpec spec{.pool = *assume == 0 ? "best-fit" : "ideal", .policy = policy, .machine = kMachine};
            if (*assume != 0) spec.assume = Assumptions::find(assume);
            spec.iterations = iterations;
            const double peak = static_cast<double>(ideal_peak(trace, spec.assume).count());
            spec.capacity = Bytes{static_cast<std::int64_t>(fraction * peak)};
            const Result result = simulate(trace, spec, true);
            INFO(result.message);
            REQUIRE(result.outcome != Outcome::kError);
            ++runs;
            if (result.outcome != Outcome::kOk) continue;
            ++ended;
            CHECK(replay(trace, spec, result.realised) == result.totals);
            const HostReport report = execute_on_host(
                trace, result.realised, {.copy_on_write = spec.assume.copy_on_write, .threads = false, .arena = 1_MiB});
            INFO(report.message);
            CHECK(report.outcome == HostOutcome::kOk);
            CHECK(report.corrupt == Bytes{});
          }
  }
  INFO(ended << " of " << runs);
  CHECK(ended * 2 > runs);
}

}  // namespace tidepool::small_tensors_test
