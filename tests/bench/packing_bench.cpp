// The time of planning addresses by the number of buffers: one pass, and the search (tide-pool) at its default effort.
#include <benchmark/benchmark.h>

#include "simulator/solvers/packing/greedy.hpp"
#include "simulator/solvers/packing/minimise.hpp"
#include "tests/dense_instance.hpp"

using namespace tidepool;

namespace {

double percent_above_load(Bytes height, const Instance& instance) {
  return 100 * (static_cast<double>(height.count()) / static_cast<double>(load_of(instance).count()) - 1);
}

void one_pass(benchmark::State& state) {
  const Instance instance = tests::dense_instance(state.range(0));
  Bytes height;
  for (auto _ : state)
    height = height_of(instance, place_in_order(instance, in_order(instance, PackingOrder::kSize), Fit::kFirst));
  state.counters["above_load_%"] = percent_above_load(height, instance);
}

void tide_pool(benchmark::State& state) {
  const Instance instance = tests::dense_instance(state.range(0));
  Layout layout;
  for (auto _ : state) layout = minimise(instance, {}, kDefaultEffort);
  state.counters["above_load_%"] = percent_above_load(layout.height, instance);
}

}  // namespace

BENCHMARK(one_pass)->RangeMultiplier(10)->Range(100, 1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(tide_pool)->RangeMultiplier(10)->Range(100, 1'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);
