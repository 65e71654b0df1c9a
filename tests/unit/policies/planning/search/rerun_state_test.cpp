// The state after many changes of choices, compared with a state that is made for the same choices at once.
#include "policies/planning/search/rerun_state.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::rerun_state_test {

namespace {

using Held = RerunState::Held;

RerunProblem random_problem(tests::Random& random) {
  RerunProblem problem{.inputs = {}, .cost = {}, .bytes = {}, .room = 60, .most_runs = random.chance(50) ? 2 : 0};
  const std::size_t ops = 5 + random.below(80);
  for (std::size_t i = 0; i < ops; ++i) {
    std::vector<std::uint32_t> inputs;
    for (std::size_t n = random.below(4); n > 0 && i > 0; --n)
      inputs.push_back(static_cast<std::uint32_t>(random.chance(60) ? i - 1 - random.below(std::min<std::size_t>(i, 4))
                                                                    : random.below(i)));
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    problem.inputs.push_back(inputs);
    problem.cost.push_back(static_cast<std::int64_t>(random.below(9)));
    problem.bytes.push_back(static_cast<std::int64_t>(random.below(9)));
  }
  return problem;
}

Held random_held(tests::Random& random, const RerunState::Interval& interval) {
  const auto in = [&](RerunState::Stage from, RerunState::Stage to) {
    return from + static_cast<RerunState::Stage>(random.below(static_cast<std::size_t>(to - from) + 1));
  };
  if (random.chance(20)) return RerunState::kept(interval);
  const RerunState::Stage until = in(interval.from, interval.to), again = in(until, interval.to);
  return {until, again, in(again, interval.to), random.chance(50)};
}

/// The peak of a schedule by definition: a run's value is resident until its last reader before the next run.
std::int64_t peak_of(const RerunProblem& problem, const std::vector<std::uint32_t>& runs) {
  std::vector<std::int64_t> bytes(runs.size() + 1);
  for (std::size_t p = 0; p < runs.size(); ++p) {
    std::size_t last = p;
    for (std::size_t q = p + 1; q < runs.size() && runs[q] != runs[p]; ++q) {
      const auto& inputs = problem.inputs[runs[q]];
      if (std::find(inputs.begin(), inputs.end(), runs[p]) != inputs.end()) last = q;
    }
    for (std::size_t q = p; q <= last; ++q) bytes[q] += problem.bytes[runs[p]];
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace

TEST_CASE("changed choices give the state that is built for them, and reversed changes give the state before") {
  tests::Random random{3};
  int fitting = 0;
  for (int round = 0; round < 60; ++round) {
    const RerunProblem problem = random_problem(random);
    RerunState state{problem};
    for (int step = 0; step < 40; ++step) {
      const std::vector<Held> before{state.held().begin(), state.held().end()};
      const RerunState::Totals totals = state.totals();
      std::vector<RerunState::Change> changes;
      for (std::size_t n = 1 + random.below(3); n > 0; --n) {
        const auto i = static_cast<std::uint32_t>(random.below(state.intervals().size()));
        changes.push_back({i, random_held(random, state.intervals()[i])});
      }
      state.exchange(changes);
      RerunState fresh{problem};
      std::vector<RerunState::Change> all;
      for (std::uint32_t i = 0; i < state.held().size(); ++i) all.push_back({i, state.held()[i]});
      fresh.exchange(all);
      REQUIRE(state.runs() == fresh.runs());
      REQUIRE(state.totals().again == fresh.totals().again);
      REQUIRE(state.totals().excess == fresh.totals().excess);
      REQUIRE(state.totals().worst == fresh.totals().worst);
      REQUIRE(state.totals().too_often == fresh.totals().too_often);
      REQUIRE(state.totals().fits() == (peak_of(problem, state.runs()) <= problem.room));
      std::int64_t again = 0;
      for (const std::uint32_t op : state.runs()) again += problem.cost[op];
      for (const std::int64_t cost : problem.cost) again -= cost;
      REQUIRE(state.totals().again == again);
      fitting += state.totals().fits();
      if (random.chance(60)) continue;
      std::reverse(changes.begin(), changes.end());
      state.exchange(changes);
      REQUIRE(std::equal(before.begin(), before.end(), state.held().begin()));
      REQUIRE(state.totals().again == totals.again);
      REQUIRE(state.totals().excess == totals.excess);
    }
  }
  CHECK(fitting > 200);
  CHECK(fitting < 2'200);
}

}  // namespace tidepool::rerun_state_test
