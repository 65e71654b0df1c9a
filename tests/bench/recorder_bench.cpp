// The recorder's times at a kernel launch: to look up one address, and to search all parameters for addresses.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tracer/cupti/parameter_scan.hpp"

namespace {

using namespace tidepool::cupti;

constexpr std::uint64_t kBase = 0x7f4000000000, kStep = 2 << 20;

LiveRanges ranges_of(std::int64_t count) {
  LiveRanges ranges;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) ranges.add(kBase + i * kStep, kStep / 2);
  return ranges;
}

/// Random addresses: about half of them in live ranges, the others in the gaps between the ranges.
std::vector<std::uint64_t> addresses(std::int64_t count) {
  std::mt19937_64 random{1};
  std::vector<std::uint64_t> result(4096);
  for (std::uint64_t& address : result) address = kBase + random() % (static_cast<std::uint64_t>(count) * kStep);
  return result;
}

void find_live_range(benchmark::State& state) {
  const LiveRanges ranges = ranges_of(state.range(0));
  const std::vector<std::uint64_t> asked = addresses(state.range(0));
  std::size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(ranges.find(asked[at++ % asked.size()]));
  state.counters["lookups/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(find_live_range)->Arg(600)->Arg(100'000);

/// Scans eight pointers and a struct of 512 bytes, like the parameters of PyTorch's kernels over lists of tensors.
void scan_parameters(benchmark::State& state) {
  const LiveRanges ranges = ranges_of(state.range(0));
  const std::vector<std::uint64_t> words = addresses(state.range(0));
  KernelLayout layout;
  std::vector<const void*> values;
  for (std::uint32_t i = 0; i < 8; ++i) {
    layout.push_back({i * 8, 8, ParameterType::kPointer});
    values.push_back(&words[i]);
  }
  layout.push_back({64, 512});
  values.push_back(&words[64]);
  const TensorMaps maps;
  ParameterScan scan;
  for (auto _ : state) {
    scan.scan(layout, values.data(), ranges, maps);
    benchmark::DoNotOptimize(scan.found().data());
  }
  state.counters["launches/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(scan_parameters)->Arg(600)->Arg(100'000);

}  // namespace
