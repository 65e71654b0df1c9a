// Allocs and frees per second of six pools, on events like those of training steps, at two sizes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "simulator/engine/segment_device.hpp"
#include "simulator/registry.hpp"
#include "traces/builder.hpp"

namespace {

using namespace tidepool;

struct Event {
  std::uint32_t block;
  Bytes size;  // 0: the block ends
};

/// Iterations of a network of `layers` layers: parameters that stay, activations that live from the forward to the
/// backward pass, short workspaces in both passes, gradients that end at the update. Some sizes repeat from layer to
/// layer, and about one workspace in eight has a random size.
std::vector<Event> training_string(std::uint32_t layers, std::uint32_t iterations) {
  std::mt19937 random{1};
  std::vector<Event> events;
  std::uint32_t blocks = 0;
  const auto alloc = [&](Bytes size) {
    events.push_back({blocks, size});
    return blocks++;
  };
  const auto free = [&](std::uint32_t block) { events.push_back({block, Bytes{}}); };
  const auto size_of = [&](std::uint32_t kind) { return Bytes{(1 + kind * 2'654'435'761u % 4096) * 700ll}; };
  for (std::uint32_t layer = 0; layer < layers; ++layer) alloc(size_of(layer));
  for (std::uint32_t i = 0; i < iterations; ++i) {
    std::vector<std::uint32_t> activations, gradients;
    const auto workspace = [&](std::uint32_t layer) {
      const Bytes varied{static_cast<std::int64_t>(random() % 4'000'000 + 1)};
      free(alloc(random() % 8 == 0 ? varied : size_of(layer % 23)));
    };
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      activations.push_back(alloc(size_of(layer % 17)));
      workspace(layer);
      activations.push_back(alloc(size_of(layer % 29) / 4 + Bytes{1}));
    }
    for (std::uint32_t layer = layers; layer-- > 0;) {
      workspace(layer);
      gradients.push_back(alloc(size_of(layer)));
      for (int k = 0; k < 2; ++k) {
        const std::uint32_t upstream = alloc(size_of(layer % 17));
        free(activations.back());
        activations.pop_back();
        free(upstream);
      }
    }
    std::shuffle(gradients.begin(), gradients.end(), random);
    for (const std::uint32_t gradient : gradients) free(gradient);
  }
  return events;
}

void replay_string(benchmark::State& state, const std::string& name) {
  const auto layers = static_cast<std::uint32_t>(state.range(0));
  const std::vector<Event> events = training_string(layers, 20'000 / layers + 1);
  std::vector<Block> places(events.size());
  const Trace trace = TraceBuilder{}.finish();
  const PoolInfo& info = find_pool(name);
  for (auto _ : state) {
    SegmentDevice device{80_GiB};
    const std::unique_ptr<Pool> pool = info.make(Options{info.name, info.options, {}});
    pool->start(trace, 80_GiB, device);
    for (const Event& event : events) {
      if (event.size > Bytes{}) {
        places[event.block] = pool->place({event.size, StreamId{0}, {}}).value();
      } else {
        pool->release(places[event.block]);
      }
    }
    benchmark::DoNotOptimize(pool->largest_hole());
  }
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events.size()), benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK_CAPTURE(replay_string, ideal, "ideal")->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(replay_string, first_fit, "first-fit")->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(replay_string, best_fit, "best-fit")->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(replay_string, cnmem, "cnmem")->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(replay_string, pytorch, "pytorch")->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(replay_string, pytorch_expandable, "pytorch-expandable")->Arg(100)->Arg(1000);

}  // namespace
