// Actions per second of a run at several sizes: without evictions, and with evictions at half the peak. The replay of a
// plan that swaps is measured on three machines: with independent copies each way, with a shared link, and with copies
// in pieces. A run at half the peak ends with time_limit once its overhead exceeds the step's time without evictions.
#include <benchmark/benchmark.h>

#include <map>
#include <string>

#include "simulator/run.hpp"
#include "tests/bench/training_trace.hpp"
#include "tests/random_trace.hpp"

namespace {

using namespace tidepool;

const Trace& training_step(int ops) {
  static std::map<int, Trace> made;
  const auto known = made.find(ops);
  return known != made.end() ? known->second : made.emplace(ops, tests::training_trace(ops)).first->second;
}

const Trace& random_step(int ops) {
  static std::map<int, Trace> made;
  const auto known = made.find(ops);
  return known != made.end() ? known->second : made.emplace(ops, tests::random_trace(3, ops)).first->second;
}

void measure(benchmark::State& state, const Trace& trace, const RunSpec& spec) {
  Result result;
  for (auto _ : state) {
    result = simulate(trace, spec);
    benchmark::DoNotOptimize(result.totals);
  }
  state.SetLabel(std::string{to_text(result.outcome)});
  const auto runs = static_cast<double>(state.iterations());
  const auto victims = static_cast<double>(result.totals.eviction_count);
  state.counters["actions/s"] =
      benchmark::Counter{static_cast<double>(result.totals.actions) * runs, benchmark::Counter::kIsRate};
  state.counters["evictions"] = victims;
  if (victims > 0)
    state.counters["s/eviction"] =
        benchmark::Counter{victims * runs, benchmark::Counter::kIsRate | benchmark::Counter::kInvert};
}

void nothing_evicted(benchmark::State& state, const std::string& pool) {
  measure(state, training_step(static_cast<int>(state.range(0))), {.pool = pool, .policy = "none"});
}

void half_the_peak(benchmark::State& state, const std::string& policy) {
  const Trace& trace = training_step(static_cast<int>(state.range(0)));
  measure(state, trace, {.policy = policy, .capacity = trace.ideal_peak() / 2, .overhead_limit = 2.0});
}

void random_program(benchmark::State& state, const std::string& policy) {
  const Trace& trace = random_step(static_cast<int>(state.range(0)));
  measure(state, trace, {.policy = policy, .capacity = trace.ideal_peak() / 2, .overhead_limit = 2.0});
}

/// A plan of lru-swap, checked and timed action by action.
void replay_swapped(benchmark::State& state, const Machine& machine) {
  const Trace& trace = training_step(static_cast<int>(state.range(0)));
  const RunSpec spec{.policy = "lru-swap", .capacity = trace.ideal_peak() / 2, .machine = machine};
  const Plan plan = simulate(trace, spec, true).realised;
  for (auto _ : state) benchmark::DoNotOptimize(replay(trace, spec, plan));
  state.counters["actions/s"] =
      benchmark::Counter{static_cast<double>(plan.actions.size()), benchmark::Counter::kIsIterationInvariantRate};
}

Machine in_pieces() {
  Machine machine = find_machine("a100-pcie4");
  machine.chunk = 1_MiB;
  return machine;
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(nothing_evicted, ideal, "ideal")->Apply(sizes);
BENCHMARK_CAPTURE(nothing_evicted, best_fit, "best-fit")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, lru, "lru")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, largest, "largest")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, lru_swap, "lru-swap")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, dtr_local, "dtr-local")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, dtr_eq, "dtr-eq")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, dtr, "dtr")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, msps, "msps")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, next_use, "next-use")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, dte, "dte")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, coop, "coop")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, coop_exact, "coop(window=exact)")->Apply(sizes);
BENCHMARK_CAPTURE(half_the_peak, random, "random")->Apply(sizes);
BENCHMARK_CAPTURE(replay_swapped, two_queues, find_machine("g10-a100"))->Apply(sizes);
BENCHMARK_CAPTURE(replay_swapped, shared_link, find_machine("a100-pcie4"))->Apply(sizes);
BENCHMARK_CAPTURE(replay_swapped, in_pieces, in_pieces())->Apply(sizes);
BENCHMARK_CAPTURE(random_program, lru_swap, "lru-swap")->Apply(sizes);
BENCHMARK_CAPTURE(random_program, dtr_eq, "dtr-eq")->Apply(sizes)->Arg(1'000'000);
BENCHMARK_CAPTURE(random_program, dtr, "dtr")->Apply(sizes);

}  // namespace
