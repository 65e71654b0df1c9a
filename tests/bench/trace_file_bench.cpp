// The speed at which traces are read, checked and written. A record is a buffer, version, op, use or step of a trace.
#include <benchmark/benchmark.h>

#include "tests/random_trace.hpp"
#include "traces/file/decode.hpp"
#include "traces/file/writer.hpp"
#include "traces/jsonl/jsonl.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

void count(benchmark::State& state, const Trace& trace, std::size_t bytes) {
  const auto passes = static_cast<double>(state.iterations());
  state.counters["records/s"] =
      benchmark::Counter(passes * static_cast<double>(summarize(trace).records()), benchmark::Counter::kIsRate);
  state.counters["bytes/s"] = benchmark::Counter(passes * static_cast<double>(bytes), benchmark::Counter::kIsRate);
}

void read_file(benchmark::State& state) {
  const Trace trace = tests::random_trace(1, static_cast<int>(state.range(0)));
  const Input input{"bench.tide", to_trace_file(trace)};
  for (auto _ : state) benchmark::DoNotOptimize(read_trace_file(input).hash().data());
  count(state, trace, input.bytes().size());
}
BENCHMARK(read_file)->Arg(10'000)->Arg(300'000)->Unit(benchmark::kMillisecond);

void check_and_index(benchmark::State& state) {
  const Trace trace = tests::random_trace(1, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    TraceData data = trace.data();
    state.ResumeTiming();
    benchmark::DoNotOptimize(Trace{std::move(data)}.hash().data());
  }
  count(state, trace, 0);
}
BENCHMARK(check_and_index)->Arg(10'000)->Arg(300'000)->Unit(benchmark::kMillisecond);

void write_file(benchmark::State& state) {
  const Trace trace = tests::random_trace(1, static_cast<int>(state.range(0)));
  std::size_t bytes = 0;
  for (auto _ : state) bytes = to_trace_file(trace).size();
  count(state, trace, bytes);
}
BENCHMARK(write_file)->Arg(10'000)->Arg(300'000)->Unit(benchmark::kMillisecond);

void read_json_lines(benchmark::State& state) {
  const Trace trace = tests::random_trace(1, static_cast<int>(state.range(0)));
  const Input input{"bench.jsonl", to_jsonl(trace)};
  for (auto _ : state) benchmark::DoNotOptimize(read_jsonl(input).hash().data());
  count(state, trace, input.bytes().size());
}
BENCHMARK(read_json_lines)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tidepool
