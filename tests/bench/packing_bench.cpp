// What planning costs by the number of buffers: one pass, and the search at its default effort.
#include <benchmark/benchmark.h>

#include "simulator/packing/greedy.hpp"
#include "simulator/packing/minimise.hpp"
#include "simulator/packing/orders.hpp"

using namespace tidepool;

namespace {

/// Buffers of 512 B to 16 MiB that live for 1 to 8,192 of two positions per buffer; each doubling of size
/// and length is equally frequent. Every run has the same instances.
Instance synthetic(std::int64_t buffers) {
  Instance instance;
  std::uint64_t state = 1;
  const auto below = [&](std::int64_t end) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(end));
  };
  for (std::int64_t i = 0; i < buffers; ++i) {
    const std::int64_t first = below(2 * buffers), scale = std::int64_t{1} << below(13);
    const std::int64_t size = (std::int64_t{1} << below(15)) * 512;
    const std::int64_t end = first + scale + below(scale);
    instance.add(Bytes{size + below(size / 512) * 512}, first, end);
  }
  return instance;
}

double percent_above_load(Bytes height, const Instance& instance) {
  return 100 * (static_cast<double>(height.count()) / static_cast<double>(load_of(instance).count()) - 1);
}

void one_pass(benchmark::State& state) {
  const Instance instance = synthetic(state.range(0));
  Bytes height;
  for (auto _ : state)
    height = height_of(instance, place_in_order(instance, in_order(instance, PackingOrder::kSize), Fit::kFirst));
  state.counters["above_load_%"] = percent_above_load(height, instance);
}

void tide_pool(benchmark::State& state) {
  const Instance instance = synthetic(state.range(0));
  Layout layout;
  for (auto _ : state) layout = minimise(instance, {}, kDefaultEffort);
  state.counters["above_load_%"] = percent_above_load(layout.height, instance);
}

}  // namespace

BENCHMARK(one_pass)->RangeMultiplier(10)->Range(100, 1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(tide_pool)->RangeMultiplier(10)->Range(100, 1'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);
