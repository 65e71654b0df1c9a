// Runs that settle, in closed form: the iterations that repeat, and the means of times and counts.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/confirmation.hpp"
#include "simulator/policy.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::steady_state_test {

namespace {

/// 1 GB/s each way without latency: 1 B takes 1 ns.
const Machine kMachine = tests::byte_per_nano();

RunSpec steady(std::string policy, Bytes capacity, Machine machine = kMachine) {
  return {.pool = "ideal",
          .policy = std::move(policy),
          .capacity = capacity,
          .machine = std::move(machine),
          .overhead_limit = {},
          .steady = true,
          .iterations = kUsualIterations};
}

/// Op 0 uses a weight of 100 B in 10 ns; op 1 needs its memory for 1000 ns; op 2 takes `last`.
Trace weight_in_the_way(Access access, Nanos last = 0_ns) {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 100_B});
  build.run({.duration = 10_ns}, {{weight, access}});
  const BufferId room = build.alloc({.size = 100_B});
  build.run({.duration = 1'000_ns}, {{room, Access::kWrite}});
  build.free(room);
  if (last > 0_ns) build.run({.duration = last}, {});
  return build.finish();
}

/// Runs a policy of this test, checks that a replay of its plan has the same cost, and returns the result.
template <class Policy>
Result run_under(const Trace& trace, const RunSpec& spec) {
  std::vector<std::unique_ptr<tidepool::Policy>> policies;
  policies.push_back(std::make_unique<Policy>());
  Result result = simulate_under(trace, spec, std::move(policies), true, true);
  INFO(result.message);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

Result run(const Trace& trace, const RunSpec& spec) {
  Result result = simulate(trace, spec, true);
  INFO(result.message);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

/// Swaps the only weight out when a place is needed. Swaps it in before op 2 only if the iteration began without it.
class EveryOtherTime final : public Policy {
 public:
  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    for (std::uint32_t v = 0; v < view.trace().versions().size(); ++v)
      if (view.evictable(VersionId{v})) return out.push_back({.verb = Verb::kSwapOut, .subject = v});
  }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override {
    const VersionId last = view.trace().made(OpId{0})[0];
    if (op == OpId{0}) began_there_ = view.resident(view.trace().first_version(BufferId{0}));
    if (op == OpId{2} && !began_there_) out.push_back({.verb = Verb::kSwapIn, .before = op, .subject = last.value()});
  }

 private:
  bool began_there_ = false;
};

}  // namespace

TEST_CASE("a weight that must leave costs a swap-in and a swap-out in every iteration but the first") {
  // In ns. First: op0 0-10, out 10-110, op1 110-1110. Later: in 0-100, op0 100-110, out 110-210, op1 210-1210.
  const Trace trace = weight_in_the_way(Access::kReadWrite);
  const Result result = run(trace, steady("lru-swap", 100_B));
  CHECK(result.cycle.first_iteration == 1'110_ns);
  CHECK(result.totals.makespan == 1'210_ns);
  CHECK(result.cycle.iterations == 1);
  CHECK(result.cycle.lead_in == 1);
  CHECK(result.cycle.settled);
  CHECK(result.cycle.start_on_host == 0_B);
  CHECK(result.totals.swap_in == 100_B);
  CHECK(result.totals.swap_out == 100_B);
  CHECK(result.totals.stall.compute == 200_ns);
  CHECK(result.realised.cycle == 1);
}

TEST_CASE("a weight that is only read is swapped out once and then only swapped in") {
  // In ns. First: op0 0-10, out 10-110, op1 110-1110. Later: in 0-100, op0 100-110, op1 110-1110; the host has a copy.
  const Result result = run(weight_in_the_way(Access::kRead), steady("lru-swap", 100_B));
  CHECK(result.totals.makespan == 1'110_ns);
  CHECK(result.totals.swap_in == 100_B);
  CHECK(result.totals.swap_out == 0_B);
}

TEST_CASE("a run that alternates between two kinds of iterations takes their mean") {
  // In ns. If the weight is resident at first: op0 0-10, out 10-110, op1 110-1110, op2 1110-1610; at the end it is
  // absent. Otherwise: in 0-100, op0 100-110, out 110-210, op1 210-1210, op2 1210-1710, and it is swapped in during
  // op2.
  const Trace trace = weight_in_the_way(Access::kReadWrite, 500_ns);
  for (const int tried : {3, 4, 5, 8, 16}) {
    INFO(tried);
    RunSpec spec = steady("none", 100_B);
    spec.iterations = tried;
    const Result result = run_under<EveryOtherTime>(trace, spec);
    CHECK(result.cycle.iterations == 2);
    CHECK(result.cycle.lead_in == 1);  // only the first iteration begins without a copy on the host
    CHECK(result.cycle.first_iteration == 1'610_ns);
    CHECK(result.totals.makespan == (1'610_ns + 1'710_ns) / 2);
    CHECK(result.totals.swap_in == (0_B + 200_B) / 2);
    CHECK(result.totals.swap_out == 100_B);
    CHECK(result.totals.eviction_count == 1);
    CHECK(result.totals.stall.compute == (100_ns + 200_ns) / 2);
    CHECK(result.realised.cycle == 2);
    const std::vector<Totals> costs = costs_of_iterations(trace, spec, result.realised);
    REQUIRE(costs.size() == 3);
    CHECK(costs[0].makespan == 1'610_ns);
    CHECK(costs[1].makespan == 1'710_ns);
    CHECK(costs[2].makespan == 1'610_ns);
    CHECK(whole_cost(trace, spec, result.realised).makespan == 1'610_ns + 1'710_ns + 1'610_ns);
  }
}

TEST_CASE("a run of one or two iterations does not settle, says so, and takes the mean of all") {
  const Trace trace = weight_in_the_way(Access::kReadWrite, 500_ns);
  for (const auto& [tried, mean] : {std::pair{1, 1'610_ns}, std::pair{2, (1'610_ns + 1'710_ns) / 2}}) {
    INFO(tried);
    RunSpec spec = steady("none", 100_B);
    spec.iterations = tried;
    const Result result = run_under<EveryOtherTime>(trace, spec);
    CHECK_FALSE(result.cycle.settled);
    CHECK(result.cycle.iterations == tried);
    CHECK(result.totals.makespan == mean);
  }
}

void add(Confirmation& to, const Action& action) {
  to.add(action.verb, action.before, action.subject, action.offset, action.size);
}

TEST_CASE("every iteration of a run is executed again, and the result is compared with the run's") {
  const Trace trace = weight_in_the_way(Access::kReadWrite, 500_ns);
  const RunSpec spec = steady("none", 100_B);
  const Plan plan = run_under<EveryOtherTime>(trace, spec).realised;
  const std::vector<Totals> costs = costs_of_iterations(trace, spec, plan);
  const auto confirm = [&](const std::vector<Totals>& said) {
    Confirmation confirmation{trace, spec, false};
    for (const Action& action : plan.actions) add(confirmation, action);
    confirmation.finish(said);
  };
  CHECK_NOTHROW(confirm(costs));
  std::vector<Totals> other = costs;
  other[1].makespan += 10_us;
  CHECK_THROWS_WITH(confirm(other), "its iteration 2 takes 1.71 us, and the run took 11.71 us");
  other = costs;
  ++other[2].eviction_count;
  CHECK_THROWS_WITH(confirm(other), "the totals of its iteration 3 differ from those of the run");
  CHECK_THROWS_WITH(confirm({costs[0], costs[1]}), "it has 3 iterations, and the run had 2");
}

TEST_CASE("actions that may be discarded are executed only when they are part of the plan") {
  const Trace trace = weight_in_the_way(Access::kReadWrite);
  const RunSpec spec = steady("none", 200_B);
  const Plan plan = run(trace, spec).realised;
  const std::vector<Totals> costs = costs_of_iterations(trace, spec, plan);
  for (const bool keep : {false, true}) {
    Confirmation confirmation{trace, spec, keep};
    const std::size_t half = plan.actions.size() / 2;
    for (std::size_t i = 0; i < half; ++i) add(confirmation, plan.actions[i]);
    confirmation.hold();
    add(confirmation, {Verb::kNext, OpId{}, 1, {}, {}});  // would be refused here if it were executed
    confirmation.execute();
    confirmation.drop_held();
    confirmation.hold();
    add(confirmation, plan.actions[half]);
    confirmation.execute();
    confirmation.accept_held();
    for (std::size_t i = half + 1; i < plan.actions.size(); ++i) add(confirmation, plan.actions[i]);
    CHECK_NOTHROW(confirmation.finish(costs));
    CHECK(confirmation.take_plan(1).actions == (keep ? plan.actions : std::vector<Action>{}));
  }
}

TEST_CASE("a step that fits is run only once") {
  for (const char* pool : {"ideal", "best-fit", "first-fit"})
    for (const char* policy : {"none", "dtr", "lru-swap", "tide"}) {
      INFO(pool << " " << policy);
      RunSpec spec = steady(policy, 1_KiB);
      spec.pool = pool;
      const Trace trace = weight_in_the_way(Access::kReadWrite);
      const Result result = run(trace, spec);
      CHECK(result.totals.makespan == 1'010_ns);
      CHECK(result.cycle.first_iteration == 1'010_ns);
      CHECK(result.cycle.iterations == 1);
      CHECK(result.cycle.lead_in == 0);
      CHECK(costs_of_iterations(trace, spec, result.realised).size() == 1);
    }
}

TEST_CASE("a pool that keeps its segments requests them from the device only in the first iteration") {
  Machine machine = kMachine;
  machine.segment_alloc = 10_us;
  RunSpec spec = steady("none", 1_GiB, machine);
  spec.pool = "pytorch";
  const Result result = run(weight_in_the_way(Access::kRead), spec);
  CHECK(result.cycle.first_iteration > 10_us);
  CHECK(result.totals.makespan == 1'010_ns);
  CHECK(result.totals.stall.memory == 0_ns);
  CHECK(result.cycle.lead_in == 1);
}

TEST_CASE("a host that is ahead of the device delays nothing") {
  // The host launches an op in 100 ns. In the first iteration, op 0 waits for its launch. Later the host is ahead of
  // all ops.
  Machine machine = kMachine;
  machine.launch = 100_ns;
  const Trace trace = weight_in_the_way(Access::kRead);
  const Result result = run(trace, steady("none", 1_GiB, machine));
  CHECK(result.cycle.first_iteration == 100_ns + 10_ns + 90_ns + 1'000_ns);  // op 1 is launched at 200 ns
  CHECK(result.totals.makespan == 1'010_ns);
  CHECK(result.baseline == 1'010_ns);
  CHECK(result.cycle.lead_in == 1);
  // If launches take longer than ops, they determine the time of an iteration.
  machine.launch = 600_ns;
  CHECK(run(trace, steady("none", 1_GiB, machine)).totals.makespan == 1'200_ns);
  CHECK(best_bound({.trace = trace, .machine = machine, .steady = true})->makespan == 1'200_ns);
  CHECK(best_bound({.trace = trace, .machine = machine})->makespan == 600_ns + 600_ns + 1'000_ns);
  CHECK(best_bound({.trace = trace, .machine = machine, .steady = true, .order = true})->makespan == 1'010_ns);
}

TEST_CASE("a first step reports the bytes that it began with on the host") {
  // When the step begins, only one of two weights fits.
  TraceBuilder build;
  const BufferId a = build.existing({.size = 100_B}), b = build.existing({.size = 60_B});
  build.run({.duration = 10_ns}, {{a}});
  build.run({.duration = 1'000_ns}, {{b}});
  const Trace trace = build.finish();
  RunSpec first = steady("lru-swap", 100_B);
  first.steady = false;
  first.iterations = 1;
  const Result result = run(trace, first);
  // In ns: op0 0-10, a leaves 10-110, b in 110-170, op1 170-1170, b is dropped, a in. a was resident at first.
  CHECK(result.cycle.start_on_host == 60_B);
  CHECK(result.totals.swap_in == 160_B);
  const Result settled = run(trace, steady("lru-swap", 100_B));
  CHECK(settled.cycle.start_on_host == 60_B);
  CHECK(settled.totals.swap_in == 160_B);
  CHECK(settled.totals.swap_out == 0_B);  // neither weight is ever changed
}

TEST_CASE("tide begins with a weight on the host if the weight does not fit on the device") {
  // Of 10 MiB, op 0 needs 8 MiB for 5 ms, then op 1 updates a weight of 8 MiB. A swap-out takes 10.5 ms, a swap-in 1
  // ms.
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 8_MiB}), room = build.alloc({.size = 8_MiB});
  build.run({.duration = 5_ms}, {{room, Access::kWrite}});
  build.free(room);
  build.run({.duration = 5_ms}, {{weight, Access::kReadWrite}});
  build.run({.duration = 5_ms}, {});
  const Trace trace = build.finish();
  Machine machine = kMachine;
  machine.h2d = {BytesPerSecond{8'388'608'000}, 0_ns};
  machine.d2h = {BytesPerSecond{838'860'800}, Nanos{500'000}};
  for (const char* policy : {"tide", "tide(with=swap)"}) {
    INFO(policy);
    RunSpec spec = steady(policy, 10_MiB, machine);
    const Result settled = run(trace, spec);
    CHECK(settled.cycle.start_on_host == 8_MiB);
    CHECK(settled.totals.makespan == 5_ms + 1_ms + 5_ms + Nanos{10'500'000});  // op 2 runs during the swap-out
    spec.steady = false;
    spec.iterations = 1;
    const Result first = run(trace, spec);
    CHECK(first.cycle.start_on_host == 8_MiB);
    CHECK(first.totals.makespan == 5_ms + 1_ms + 5_ms + 5_ms);
    CHECK(first.totals.swap_out == 0_B);
  }
}

TEST_CASE("streams that follow each other overlap from one iteration to the next") {
  // In ns: stream a 0-100, then stream b 100-160. Meanwhile a begins the next iteration, 100-200, and b follows,
  // 200-260.
  TraceBuilder build{{"a", "b"}};
  const BufferId weight = build.existing({.size = 100_B});
  build.run({.stream = StreamId{0}, .duration = 100_ns}, {{weight}});
  build.run({.stream = StreamId{1}, .duration = 60_ns}, {});
  build.order(OpId{0}, OpId{1});
  const Trace trace = build.finish();
  const RunSpec spec = steady("none", 1_GiB);
  const Result result = run(trace, spec);
  CHECK(result.cycle.first_iteration == 160_ns);
  CHECK(result.totals.makespan == 100_ns);
  CHECK(result.baseline == 100_ns);
  const std::optional<Bound> bound = best_bound(query_of(trace, spec), BoundEffort::kAll);
  REQUIRE(bound);
  CHECK(bound->makespan == 100_ns);  // stream a is never idle
  CHECK(result.cycle.lead_in == 1);
}

TEST_CASE("means are rounded to the nearest whole number, halves up") {
  Totals a, b, c;
  a.makespan = 100_ns, b.makespan = 10_ns, c.makespan = 11_ns;
  a.eviction_count = 9, b.eviction_count = 1, c.eviction_count = 3;
  a.swap_in = 5_B, b.swap_in = 7_B, c.swap_in = 7_B;
  b.peak = c.peak = 70_B;
  c.actions = 30;
  const std::vector<Totals> all{a, b, c};
  const Totals two = mean_of_last(all, 2), three = mean_of_last(all, 3);
  CHECK(two.makespan == 11_ns);  // 10.5
  CHECK(two.eviction_count == 2);
  CHECK(two.swap_in == 7_B);
  CHECK(two.peak == 70_B);
  CHECK(two.actions == 30);
  CHECK(three.makespan == 40_ns);  // 40.33
  CHECK(three.eviction_count == 4);
  CHECK(three.swap_in == 6_B);  // 6.33
  CHECK(sum_of(all).makespan == 121_ns);
  CHECK(sum_of(all).actions == 30);
}

TEST_CASE("a state recurs if all clocks do, and a host for which no action waits may be further ahead") {
  const auto boundary = [](std::int64_t state, Nanos lead = 0_ns, bool delayed = false) {
    return Boundary{{state}, {}, lead, delayed};
  };
  const auto cycle = [](const std::vector<Boundary>& all) {
    return cycle_of(all, std::vector<Totals>(all.size() - 1));
  };
  CHECK(cycle({boundary(1)}) == 0);
  CHECK(cycle({boundary(1), boundary(2)}) == 0);
  CHECK(cycle({boundary(1), boundary(1, 0_ns, true)}) == 1);
  CHECK(cycle({boundary(1), boundary(2), boundary(1)}) == 2);
  CHECK(cycle({boundary(1), boundary(1, 5_ns, true)}) == 0);  // an action waited for the host
  CHECK(cycle({boundary(1), boundary(1, 5_ns)}) == 1);        // no action waited for the host, and none will
  CHECK(cycle({boundary(1, 5_ns), boundary(1)}) == 0);        // the host falls behind
}

TEST_CASE("if addresses do not recur, a cycle must have the same costs twice, and otherwise the longest cycle counts") {
  const auto boundary = [](std::int64_t state, std::int64_t place) { return Boundary{{state}, {place}, 0_ns, false}; };
  const auto costs = [](std::vector<Nanos> times) {
    std::vector<Totals> all(times.size());
    for (std::size_t i = 0; i < times.size(); ++i) all[i].makespan = times[i];
    return all;
  };
  const std::vector<Boundary> wanders{boundary(1, 1), boundary(2, 2), boundary(1, 3), boundary(2, 4), boundary(1, 5)};
  CHECK(cycle_of(wanders, costs({3_ns, 4_ns, 3_ns, 4_ns})) == 2);
  CHECK(cycle_of(wanders, costs({3_ns, 4_ns, 3_ns, 5_ns})) == 0);
  CHECK(cycle_of(std::span{wanders}.first(3), costs({3_ns, 4_ns})) == 0);
  CHECK(longest_cycle(wanders) == 2);
  const std::vector<Boundary> stays{boundary(1, 1), boundary(1, 2), boundary(1, 3), boundary(1, 4), boundary(1, 5)};
  CHECK(cycle_of(stays, costs({3_ns, 4_ns, 5_ns, 5_ns})) == 1);
  CHECK(cycle_of(stays, costs({3_ns, 4_ns, 5_ns, 6_ns})) == 0);
  CHECK(longest_cycle(stays) == 2);
  CHECK(longest_cycle({{boundary(1, 1), boundary(2, 2), boundary(3, 3)}}) == 0);
}

TEST_CASE("a grid asks for the steady state of a step that repeats, and for one step on request") {
  const Trace repeated = weight_in_the_way(Access::kRead);
  TraceBuilder build;
  build.free([&] {
    const BufferId b = build.alloc({.size = 1_B});
    build.run({.duration = 1_ns}, {{b, Access::kWrite}});
    return b;
  }());
  const Trace alone = build.finish();
  CHECK(repeats(repeated));
  CHECK_FALSE(repeats(alone));
  const auto spec = [](const GridText& text, const Trace& trace) { return Grid{text, trace}.at(0); };
  CHECK(spec({}, repeated).steady);
  CHECK(spec({}, repeated).iterations == kUsualIterations);
  CHECK_FALSE(spec({}, alone).steady);
  CHECK(spec({}, alone).iterations == 1);
  CHECK(spec({.iterations = "7"}, alone).steady);
  CHECK(spec({.iterations = "1"}, repeated).steady);
  CHECK(spec({.iterations = "1"}, repeated).iterations == kUsualIterations);
  CHECK(spec({.iterations = "40"}, repeated).iterations == 40);
  CHECK_FALSE(spec({.first = true}, repeated).steady);
  CHECK(spec({.first = true}, repeated).iterations == 1);
  CHECK_FALSE(spec({.assume = "simrd"}, repeated).steady);
  CHECK_THROWS_WITH(spec({.iterations = "7", .first = true}, repeated),
                    "--first: one step alone; expected no --iterations beside it");
}

TEST_CASE("a run whose last iteration is faster than any possible mean reports the mean") {
  // Op 0 reads a weight of 8 MiB and makes 2 MiB, which op 2 updates; op 3 makes 6 MiB that cannot be recomputed. With
  // 10 MiB, iterations of 22 and 48 ms can alternate, and the last one may take 22 ms. No cycle has a mean below 28 ms.
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 8_MiB}), one = build.alloc({.size = 2_MiB});
  build.run({.duration = 3_ms}, {{weight}, {one, Access::kWrite}});
  const BufferId two = build.alloc({.size = 2_MiB});
  build.run({.duration = 2_ms}, {{one}, {two, Access::kWrite}});
  build.run({.duration = 5_ms}, {{one, Access::kReadWrite}, {two}});
  build.free(one);
  const BufferId three = build.alloc({.size = 6_MiB});
  build.run({.kind = OpKind::kSource, .duration = 6_ms}, {{two}, {three, Access::kWrite}});
  build.free(three);
  build.run({.duration = 6_ms}, {{two, Access::kReadWrite}});
  build.free(two);
  const Trace trace = build.finish();
  Machine machine = kMachine;
  machine.h2d = {BytesPerSecond{524'288'000}, 0_ns};
  machine.d2h = {BytesPerSecond{8'388'608'000}, Nanos{500'000}};
  RunSpec spec = steady("tide(with=swap)", 10_MiB, machine);
  spec.overhead_limit = 10.0;
  const Result result = run(trace, spec);
  CHECK(result.cycle.settled);
  CHECK(result.totals.makespan <= 35_ms);
  CHECK(result.totals.makespan >= 28_ms);
  const std::optional<Bound> bound = best_bound(query_of(trace, spec), BoundEffort::kAll);
  REQUIRE(bound);
  CHECK(bound->makespan >= 28_ms);
  CHECK(bound->makespan <= result.totals.makespan);
  for (const char* policy : {"lru-swap", "autoswap", "g10", "capuchin", "tide"}) {
    spec.policy = policy;
    const Result other = simulate(trace, spec);
    INFO(policy);
    if (other.outcome == Outcome::kOk) CHECK(other.totals.makespan >= 28_ms);
  }
}

}  // namespace tidepool::steady_state_test
