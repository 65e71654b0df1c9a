// Runs per second of a sweep over one trace, at two sizes, with one and with two threads. The time includes making the
// rows and storing them in a database in memory.
#include <benchmark/benchmark.h>

#include "simulator/studies/sweep/sweep.hpp"
#include "tests/random_trace.hpp"

namespace {

using namespace tidepool;

constexpr std::uint64_t kSeed = 6;

/// 2 pools x 2 policies x 25 capacities = 100 runs from 0.5x to 1.0x of the peak.
void sweep_runs(benchmark::State& state) {
  NamedTrace trace{"random", tests::random_trace(kSeed, static_cast<int>(state.range(0)))};
  Grid grid{{.pool = "best-fit,first-fit", .policy = "lru-swap,none", .capacity = "0.5x..1.0x/25"}, trace.trace};
  std::vector<SweepPart> parts;
  parts.push_back({std::move(trace), std::move(grid)});
  std::int64_t runs = 0, actions = 0;
  for ([[maybe_unused]] const auto iteration : state) {
    Database database{":memory:"};
    const SweepProgress end = sweep(parts, database, {.threads = static_cast<int>(state.range(1))});
    runs += static_cast<std::int64_t>(end.done);
    actions += end.actions;
  }
  state.counters["runs/s"] = benchmark::Counter(static_cast<double>(runs), benchmark::Counter::kIsRate);
  state.counters["actions/s"] = benchmark::Counter(static_cast<double>(actions), benchmark::Counter::kIsRate);
}

BENCHMARK(sweep_runs)
    ->ArgNames({"ops", "threads"})
    ->ArgsProduct({{300, 3'000}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
