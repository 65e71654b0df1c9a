#include "simulator/solvers/bounds/recompute_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"

namespace tidepool::recompute_bounds_test {

namespace {

MinCutPlan plan_of(const Trace& trace, Bytes capacity) {
  return min_cut_plan(RecomputeModel{trace, {}, StreamId{0}}, capacity);
}

std::int64_t knapsack_of(const Trace& trace, Bytes capacity) {
  const std::vector<std::int64_t> bounds = knapsack_bounds(RecomputeModel{trace, {}, StreamId{0}}, capacity);
  return *std::max_element(bounds.begin(), bounds.end());
}

/// Least number of layers that are run again to reverse a chain of `length`, with its first input stored and memory for
/// `slots` more checkpoints (Griewank and Walther, "Algorithm 799: revolve", ACM TOMS 26, 2000). Dynamic programming.
std::int64_t revolve(int length, int slots) {
  static std::map<std::pair<int, int>, std::int64_t> known;
  if (length <= 1) return 0;
  if (slots == 0) return std::int64_t{length} * (length - 1) / 2;
  if (const auto found = known.find({length, slots}); found != known.end()) return found->second;
  std::int64_t least = std::int64_t{length} * (length - 1) / 2;
  for (int first = 1; first < length; ++first)
    least = std::min(least, first + revolve(length - first, slots - 1) + revolve(first, slots));
  return known[{length, slots}] = least;
}

/// Op 0 makes a (3 us), op 1 makes b from a (5 us), op 2 makes w (7 us), which no op reads, op 3 reads b. a is freed
/// after op 1, w after op 2. a and b have 100 B each, w 160 B.
Trace small_trace() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = Bytes{100}});
  build.run({.duration = 3_us}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = Bytes{100}});
  build.run({.duration = 5_us}, {{a}, {b, Access::kWrite}});
  build.free(a);
  const BufferId w = build.alloc({.size = Bytes{160}});
  build.run({.duration = 7_us}, {{w, Access::kWrite}});
  build.free(w);
  build.run({.duration = 1_us}, {{b}});
  build.free(b);
  return build.finish();
}

}  // namespace

TEST_CASE("content that does not fit beside an op is recomputed with its inputs") {
  // b (100 B) fits beside w (160 B) into 260 B and not into less. To recompute b, a must be recomputed too: 3 us + 5 us
  // for 100 B, so every missing byte costs at least 80 ns.
  const Trace trace = small_trace();
  CHECK(plan_of(trace, Bytes{260}).bound == 0);
  const MinCutPlan plan = plan_of(trace, Bytes{259});
  CHECK(plan.feasible);
  CHECK(plan.bound == 80);
  CHECK(plan.instant == 2);
  CHECK(plan.choice.known);
  CHECK(plan.choice.again == std::vector{OpId{0}, OpId{1}});
  CHECK(plan.choice.resident.empty());
  CHECK(plan.choice.point.cost == 8'000);
  CHECK(plan_of(trace, Bytes{200}).bound == 60 * 80);
  CHECK_FALSE(plan_of(trace, Bytes{199}).feasible);  // a and b need 200 B
  // The knapsack ignores that a has been freed, so it counts 5 us for 100 B.
  CHECK(knapsack_of(trace, Bytes{259}) == 50);
  CHECK(knapsack_of(trace, Bytes{200}) == 60 * 50);
}

TEST_CASE("bounds of gaps count the instants at which not everything fits") {
  // b, which is made in 5 us, does not fit beside w.
  const Trace trace = small_trace();
  const Machine machine;
  int found = 0;
  for (const Bound& bound :
       compute_bounds({.trace = trace, .machine = machine, .capacity = Bytes{200}, .remat = true}, BoundEffort::kAll))
    if (bound.name == "gap-cover") {
      ++found;
      CHECK(bound.proof == "ops that take 5 us must run again, since not everything fits at 1 instant");
    }
  CHECK(found == 1);
}

TEST_CASE("on a uniform chain the minimum cut is the optimum while no layer is run again twice") {
  // With 2 sqrt(l) slots or more for l layers, one rerun of each layer is enough.
  for (const int layers : {16, 32, 64, 128}) {
    const Trace trace = tests::chain_trace(static_cast<std::size_t>(layers));
    for (int slots = 2; slots <= layers; ++slots) {
      INFO(fmt::format("{} layers, {} slots", layers, slots));
      const Bytes capacity{(3 + slots) * 1000};  // the slots, x_0 and two gradients
      const std::int64_t least = (revolve(layers, slots - 1) - (layers - 1)) * 1000;
      const std::int64_t bound = plan_of(trace, capacity).bound;
      REQUIRE(bound <= least);
      if (slots * slots >= 4 * layers) REQUIRE(bound == least);
      REQUIRE(bound >= knapsack_of(trace, capacity));
      REQUIRE(bound == std::max(0, layers - 1 - slots) * 1000);
    }
  }
}

TEST_CASE("an op with several outputs is paid for once") {
  // One op of 10 us makes a and b, 100 B each. Of 200 B, a workspace of 150 B leaves 50 B for both.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = Bytes{100}}), b = build.alloc({.size = Bytes{100}});
  build.run({.duration = 10_us}, {{a, Access::kWrite}, {b, Access::kWrite}});
  const BufferId w = build.alloc({.size = Bytes{150}});
  build.run({.duration = 1_us}, {{w, Access::kWrite}});
  build.free(w);
  build.run({.duration = 1_us}, {{a}, {b}});
  const Trace trace = build.finish();
  CHECK(knapsack_of(trace, Bytes{200}) == 7'500);  // of 200 B, 150 B are absent
  CHECK(plan_of(trace, Bytes{200}).bound == 7'500);
  CHECK(plan_of(trace, Bytes{350}).bound == 0);
}

TEST_CASE("content that cannot be recomputed must stay in memory") {
  // The last op reads a parameter p of 100 B and a batch of 40 B from a source. The op before it needs 200 B.
  TraceBuilder build;
  const BufferId p = build.existing({.size = Bytes{100}});
  const BufferId batch = build.alloc({.size = Bytes{40}});
  build.run({.kind = OpKind::kSource, .duration = 1_us}, {{batch, Access::kWrite}});
  const BufferId w = build.alloc({.size = Bytes{200}});
  build.run({.duration = 1_us}, {{w, Access::kWrite}});
  build.free(w);
  build.run({.duration = 1_us}, {{p}, {batch}});
  build.free(batch);
  build.only_given_outputs();
  const Trace trace = build.finish();
  const Machine machine;
  for (const auto& [bytes, feasible] : {std::pair{340, true}, std::pair{339, false}}) {
    const auto bound = best_bound({.trace = trace, .machine = machine, .capacity = Bytes{bytes}, .remat = true});
    REQUIRE(bound);
    CHECK(bound->feasible == feasible);
    CHECK(plan_of(trace, Bytes{bytes}).feasible == feasible);
    // A plan that swaps needs no more than the 200 B.
    CHECK(best_bound({.trace = trace, .machine = machine, .capacity = Bytes{bytes}, .swap = true})->feasible);
  }
  CHECK(best_bound({.trace = trace, .machine = machine, .capacity = 200_B, .swap = true, .remat = true})->feasible);
  CHECK_FALSE(
      best_bound({.trace = trace, .machine = machine, .capacity = 199_B, .swap = true, .remat = true})->feasible);
}

TEST_CASE("a version that is updated in place may be kept or recomputed, and takes the bytes of one version") {
  // Op 0 makes a (100 B); op 1 updates it in place; op 2 makes w (100 B); op 3 reads a.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = Bytes{100}});
  build.run({.duration = 4_us}, {{a, Access::kWrite}});
  build.run({.duration = 2_us}, {{a, Access::kReadWrite}});
  const BufferId w = build.alloc({.size = Bytes{100}});
  build.run({.duration = 1_us}, {{w, Access::kWrite}});
  build.free(w);
  build.run({.duration = 1_us}, {{a}});
  const Trace trace = build.finish();
  CHECK(plan_of(trace, Bytes{200}).bound == 0);
  CHECK(plan_of(trace, Bytes{100}).bound == 6'000);
  CHECK(plan_of(trace, Bytes{100}).feasible);
  // Under copy-on-write, the update needs memory for both versions at once.
  const RecomputeModel apart{trace, Assumptions::find("simrd"), StreamId{0}};
  CHECK(apart.taken(1) == Bytes{200});
  CHECK(RecomputeModel{trace, {}, StreamId{0}}.taken(1) == Bytes{100});
}

TEST_CASE("bounds count no recomputation on streams other than the busiest one") {
  // a (100 B) is made in 3 us, on the same stream or a second one. Of 100 B, w takes 60 B, so 60 B of a do not fit.
  for (const bool apart : {false, true}) {
    TraceBuilder build;
    const StreamId side = build.stream(apart ? "side" : "0");
    const BufferId a = build.alloc({.size = Bytes{100}, .stream = side});
    build.run({.stream = side, .duration = 3_us}, {{a, Access::kWrite}});
    const BufferId w = build.alloc({.size = Bytes{60}});
    build.run({.duration = 7_us}, {{w, Access::kWrite}});
    build.free(w);
    build.run({.duration = 1_us}, {{a}});
    const Trace trace = build.finish();
    const Machine machine;
    const BoundQuery query{.trace = trace, .machine = machine, .capacity = Bytes{100}, .remat = true};
    for (const Bound& bound : compute_bounds(query, BoundEffort::kQuick))
      if (bound.name == "min-cut") CHECK(bound.makespan == Nanos{11'000 + 1'800});  // recomputes only 60 % of a
    CHECK(best_bound(query)->makespan == (apart ? 8_us : 14_us));
  }
}

TEST_CASE("content that may be absent is proved not to fit if neither it nor the inputs of its op do") {
  // v (400 B) is made from x (400 B), which is freed then. Beside op g (500 B), v or x must stay, since v is read
  // later: 900 B. There are so many other ops that no bound tries all plans.
  for (const bool others : {false, true}) {
    TraceBuilder build;
    const auto use = [&](Bytes size, std::string_view name) {
      const BufferId used = build.alloc({.size = size});
      build.run({.name = build.text(name), .duration = 1_us}, {{used, Access::kWrite}});
      build.free(used);
    };
    /// A version that is read once more, and an op beside it.
    const auto idle = [&](std::vector<TraceBuilder::Touch> made_from, Bytes size, Nanos cost, Bytes beside,
                          std::string_view name) {
      const BufferId made = build.alloc({.size = size});
      std::vector<TraceBuilder::Touch> touches = made_from;
      touches.push_back({made, Access::kWrite});
      build.run({.duration = cost}, touches);
      for (const TraceBuilder::Touch& touch : made_from) build.free(touch.buffer);
      use(beside, name);
      build.run({.duration = 1_us}, {{made}});
      build.free(made);
    };
    const BufferId x = build.existing({.size = 400_B});
    // Two windows of the step in which more can be saved than beside g, one of them close to g, so that a search over
    // the whole step does not look at g.
    if (others) idle({}, 10_B, 20_us, 450_B, "p");
    idle({{x}}, 400_B, 100_us, 500_B, "g");
    for (int i = 0; i < 200; ++i) use(8_B, "small");
    if (others) idle({}, 400_B, 200_us, 500_B, "q");
    const Trace trace = build.finish();
    const Machine machine;
    BoundQuery query{.trace = trace, .machine = machine, .capacity = others ? 850_B : 899_B, .remat = true};
    const Bound none = best_bound(query, BoundEffort::kAll).value();
    CHECK_FALSE(none.feasible);
    CHECK(none.name == "min-cut");
    CHECK(none.proof == fmt::format("after op {} (g), the content that is needed later and cannot be recomputed does "
                                    "not fit",
                                    others ? 4 : 1));
    query.capacity = 900_B;
    CHECK(best_bound(query, BoundEffort::kAll)->feasible);
  }
}

TEST_CASE("reruns for separate instants add up, but not in the knapsack") {
  // Two equal halves: a (100 B, made in 10 us) is idle while w (150 B) is used, and is then read. Of 200 B, 50 B are
  // left beside w.
  TraceBuilder build;
  for (int twice = 0; twice < 2; ++twice) {
    const BufferId a = build.alloc({.size = Bytes{100}});
    build.run({.duration = 10_us}, {{a, Access::kWrite}});
    const BufferId w = build.alloc({.size = Bytes{150}});
    build.run({.duration = 1_us}, {{w, Access::kWrite}});
    build.free(w);
    build.run({.duration = 1_us}, {{a}});
    build.free(a);
  }
  const Trace trace = build.finish();
  const Machine machine;
  const BoundQuery query{.trace = trace, .machine = machine, .capacity = Bytes{200}, .remat = true};
  CHECK(knapsack_of(trace, query.capacity) == 5'000);
  CHECK(plan_of(trace, query.capacity).bound == 10'000);
  CHECK(plan_of(trace, query.capacity).stretches == 2);
  for (const Bound& bound : compute_bounds(query, BoundEffort::kAll))
    if (bound.name == "gap-lp") {
      CHECK(bound.proof == "ops that take 10 us must run again, since not everything fits at 2 instants");
      CHECK(bound.makespan <= Nanos{34'000});
      CHECK(bound.makespan >= Nanos{34'000 - 2});  // the step takes 24 us; the solver's number is rounded down
    }
}

}  // namespace tidepool::recompute_bounds_test
