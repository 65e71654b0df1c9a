// Invariants of every registered planner, on random instances and the bundled samples: layouts that a check of all
// pairs accepts, bounds that hold, outcomes that are true, and runs on real memory that stay within the layout.
#include <fmt/format.h>

#include <filesystem>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/packing/minimise.hpp"
#include "simulator/solvers/packing/pack.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/paths.hpp"
#include "tests/quick_spec.hpp"
#include "tests/random_instance.hpp"
#include "traces/import/importer.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::planners_test {

namespace {

constexpr tests::InstanceKind kKinds[] = {{},
                                          {.gaps = true, .alignments = false, .fixed = false},
                                          {.gaps = false, .alignments = true, .fixed = false},
                                          {.gaps = false, .alignments = false, .fixed = true},
                                          {.gaps = true, .alignments = true, .fixed = true}};

std::vector<const PoolInfo*> planners() {
  std::vector<const PoolInfo*> found;
  for (const PoolInfo* info : all_pools())
    if (info->plan) found.push_back(info);
  return found;
}

Options options_of(const PoolInfo& info) { return {info.name, info.options, Spec(tests::quick_spec(info)).options}; }

Layout plan(const PoolInfo& info, const Instance& instance, Bytes capacity = kNoLimit) {
  return info.plan(options_of(info))->plan(instance, {.capacity = capacity});
}

Bytes top_of(const Instance& instance, const std::vector<Bytes>& offsets) {
  Bytes top;
  for (std::size_t i = 0; i < offsets.size(); ++i) top = std::max(top, offsets[i] + instance.items[i].size);
  return top;
}

Bytes load_by_positions(const Instance& instance) {
  Bytes most;
  for (const Interval& at : instance.intervals) {
    Bytes live;
    for (const Item& item : instance.items)
      for (const Interval& life : instance.lives(item))
        if (life.lower <= at.lower && at.lower < life.upper) live += item.size;
    most = std::max(most, live);
  }
  return most;
}

}  // namespace

TEST_CASE("every planner's layouts pass a check of all pairs, and its bounds hold") {
  REQUIRE_FALSE(planners().empty());
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 40 : 6); ++seed)
    for (std::size_t k = 0; k < std::size(kKinds); ++k) {
      // No items, one, a few, many.
      const std::size_t items = seed == 1 ? 0 : seed == 2 ? 1 : 2 + seed * seed % 60;
      const Instance instance = tests::random_instance(seed, items, kKinds[k]);
      check(instance);
      const Bytes load = load_by_positions(instance);
      REQUIRE(load_of(instance) == load);
      for (const PoolInfo* info : planners()) {
        INFO(fmt::format("seed {} kind {} planner {}", seed, k, info->name));
        const Layout layout = plan(*info, instance);
        CHECK(tests::fault_of(instance, layout.offsets).empty());
        CHECK(layout.outcome == Outcome::kOk);
        CHECK(layout.height == top_of(instance, layout.offsets));
        CHECK(verified_height(instance, layout.offsets) == layout.height);
        CHECK(load <= layout.lower_bound);
        CHECK(layout.lower_bound <= layout.height);
        CHECK_FALSE(layout.proof.empty());
        CHECK(plan(*info, instance).offsets == layout.offsets);
      }
    }
}

TEST_CASE("no planner's bound is above another one's height on ten thousand instances") {
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 10'000 : 100); ++seed) {
    const Instance instance = tests::random_instance(seed, 4 + seed % 9, kKinds[seed % std::size(kKinds)]);
    Bytes best = kNoLimit, bound;
    for (const PoolInfo* info : planners()) {
      const Layout layout = plan(*info, instance);
      best = std::min(best, layout.height);
      bound = std::max(bound, layout.lower_bound);
    }
    if (bound > best) FAIL("seed " << seed << ": a bound of " << bound.count() << " and a height of " << best.count());
  }
}

TEST_CASE("every planner reports its result at a capacity, and calls nothing infeasible that fits") {
  for (std::uint64_t seed = 3; seed <= 20; ++seed) {
    const Instance instance = tests::random_instance(seed, 30, {});
    const Bytes load = load_of(instance);
    for (const PoolInfo* info : planners()) {
      INFO(fmt::format("seed {} planner {}", seed, info->name));
      CHECK(plan(*info, instance, load - 1_B).outcome == Outcome::kInfeasible);
      const Bytes height = plan(*info, instance).height;
      CHECK(plan(*info, instance, height).outcome == Outcome::kOk);
      const Layout tight = plan(*info, instance, load);
      if (tight.outcome == Outcome::kOk) CHECK(tight.height <= load);
      if (tight.outcome == Outcome::kInfeasible) CHECK(tight.lower_bound > load);
    }
  }
}

TEST_CASE("a run on real memory uses the planned memory, and reads the right bytes") {
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 12 : 3); ++seed) {
    const Trace trace = tests::random_trace(seed, 40 + static_cast<int>(seed) * 20);
    for (const PoolInfo* info : planners()) {
      INFO(fmt::format("seed {} planner {}", seed, info->name));
      const Packing packing = pack(trace, *info, options_of(*info), {});
      CHECK(packing.outcome == Outcome::kOk);
      const Result result = simulate(trace, {.pool = tests::quick_spec(*info)}, true);
      REQUIRE(result.outcome == Outcome::kOk);
      CHECK(result.totals.footprint <= packing.height);
      const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 1_MiB});
      INFO(report.message);
      CHECK(report.outcome == HostOutcome::kOk);
      CHECK(report.corrupt == Bytes{});
      CHECK(report.peak == result.totals.peak);
    }
  }
}

TEST_CASE("no planner is below tide-pool, even if tide-pool has an effort of 20") {
  for (std::uint64_t seed = 1; seed <= (tests::kOptimised ? 60 : 6); ++seed)
    for (std::size_t k = 0; k < std::size(kKinds); ++k) {
      const Instance instance = tests::random_instance(seed, seed % 2 == 0 ? 21 : 40, kKinds[k]);
      const PoolInfo& tide = find_pool("tide-pool");
      const Layout answer = tide.plan({tide.name, tide.options, {{"effort", "20"}}})->plan(instance, {});
      for (const PoolInfo* info : planners()) {
        INFO(fmt::format("seed {} kind {} planner {}", seed, k, info->name));
        if (info->name != tide.name) CHECK(answer.height <= plan(*info, instance).height);
      }
    }
}

TEST_CASE("a search whose alignments leave holes finds no higher layout than hill climbing") {
  const Instance instance = tests::random_instance(3, 30, {.gaps = false, .alignments = true, .fixed = false});
  CHECK(plan(find_pool("tvm-hill-climb"), instance).height == 317_B);
  CHECK(minimise(instance, {}, 1).height <= 317_B);
}

TEST_CASE("on every bundled sample no planner is below tide-pool, whose layout is proved optimal") {
  const PoolInfo& tide = find_pool("tide-pool");
  int samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator{paths::source_folder() + "/traces/samples"}) {
    if (entry.path().extension() != ".tide") continue;
    const Trace trace = load_trace(entry.path());
    if (!tests::kOptimised && trace.buffers().size() > 2'000) continue;
    INFO(entry.path().stem().string());
    const Packing best = pack(trace, tide, Options{tide.name, tide.options, {}}, {});
    CHECK(best.optimal());
    for (const PoolInfo* info : planners()) CHECK(best.height <= pack(trace, *info, options_of(*info), {}).height);
    ++samples;
  }
  CHECK(samples >= (tests::kOptimised ? 9 : 2));
}

}  // namespace tidepool::planners_test
