// The time of bounds by the number of ops. The capacity is half of the peak. The time of knapsack and min_cut includes
// that of the step's model.
#include <benchmark/benchmark.h>

#include "simulator/solvers/bounds/recompute_bounds.hpp"
#include "simulator/solvers/bounds/window.hpp"
#include "tests/bench/training_trace.hpp"

using namespace tidepool;

namespace {

void knapsack(benchmark::State& state) {
  const Trace trace = tests::training_trace(static_cast<int>(state.range(0)));
  const Bytes capacity = trace.ideal_peak() / 2;
  for (auto _ : state) {
    const RecomputeModel model{trace, {}, StreamId{0}};
    benchmark::DoNotOptimize(knapsack_bounds(model, capacity));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void min_cut(benchmark::State& state) {
  const Trace trace = tests::training_trace(static_cast<int>(state.range(0)));
  const Bytes capacity = trace.ideal_peak() / 2;
  MinCutPlan plan;
  for (auto _ : state) plan = min_cut_plan(RecomputeModel{trace, {}, StreamId{0}}, capacity);
  state.counters["flows"] = plan.flows;
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

/// The time of the bound alone. The idle intervals (Absences) are found before; they are the same for all capacities.
void swap_window(benchmark::State& state) {
  const Trace trace = tests::training_trace(static_cast<int>(state.range(0)));
  const Absences step = find_absences(trace, false);
  const WindowQuery query{.capacity = trace.ideal_peak() / 2, .out_rate = 12, .in_rate = 12};
  WindowBound bound;
  for (auto _ : state) bound = window_bound(step, query);
  state.counters["absences"] = static_cast<double>(step.absences.size());
  state.counters["stall_ms"] = bound.stall / 1e6;
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

}  // namespace

BENCHMARK(knapsack)->Arg(1'000)->Arg(8'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(min_cut)->Arg(1'000)->Arg(8'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(swap_window)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
