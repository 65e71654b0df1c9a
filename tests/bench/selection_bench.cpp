// The time of one selection of idle intervals, by the number of ops. The capacity is half of the peak.
#include <benchmark/benchmark.h>

#include "policies/planning/gaps/selection.hpp"
#include "tests/bench/training_trace.hpp"

using namespace tidepool;

namespace {

/// The idle intervals of a step (Gap), and limits on its load.
struct Step {
  explicit Step(std::int64_t ops)
      : trace{tests::training_trace(static_cast<int>(ops))},
        circle{step_circle(trace)},
        gaps{find_gaps(trace, 0_B)},
        limits(circle.size(), circle.peak() / 2) {}

  Trace trace;
  StepCircle circle;
  std::vector<Gap> gaps;
  SlotLimits limits;
};

void count(benchmark::State& state, const Step& step, const Selection& selection) {
  state.counters["gaps"] = static_cast<double>(step.gaps.size());
  state.counters["picked"] = static_cast<double>(selection.gaps.size());
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

template <GapScore score>
void submodular(benchmark::State& state) {
  const Step step{state.range(0)};
  Selection selection;
  for (auto _ : state) selection = select_submodular(step.circle, step.gaps, score, step.limits);
  count(state, step, selection);
}

}  // namespace

BENCHMARK(submodular<GapScore::kSwdoa>)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK(submodular<GapScore::kExcess>)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);
