// Decisions for classes of gaps: the classes of a step, and the plans of the search.
#include "policies/planning/search/tied_search.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "policies/planning/search/reruns.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "traces/import/importer.hpp"
#include "traces/synthetic/gpt.hpp"

namespace tidepool::tied_search_test {

namespace {

Trace gpt(std::int64_t layers) {
  return gpt_step({.layers = layers, .hidden = 256, .heads = 4, .sequence = 256, .vocabulary = 1'000, .batch = 8});
}

struct Classes {
  StepCircle circle;
  std::vector<Gap> gaps;
  std::vector<GapClass> classes;
};

Classes classes_of(const Trace& trace) {
  Classes found{step_circle(trace), find_gaps(trace, 64_KiB), {}};
  found.classes = gap_classes(find_structure(trace), found.circle, found.gaps);
  return found;
}

const TiedSearch::Hopeless kNeverHopeless = [](const std::vector<std::uint32_t>&) { return false; };

/// The number of plans for 0.7x of the peak that a search judges if all plans are equally good. Calls `look` with each
/// of them.
std::int64_t judged_where_all_are_alike(const Trace& trace, const std::function<void(const GapPlan&)>& look,
                                        const TiedSearch::Hopeless& hopeless, std::int64_t tries) {
  const Classes found = classes_of(trace);
  const Machine machine = find_machine("a100-pcie4");
  const auto judge = [&](const GapPlan& plan) {
    look(plan);
    Result result;
    result.totals.makespan = 1_ms;
    return result;
  };
  TiedSearch search{found.circle,  found.gaps,
                    found.classes, Reruns(trace, found.gaps).costs(),
                    machine,       Bytes{trace.ideal_peak().count() * 7 / 10},
                    judge,         hopeless,
                    tries};
  search.run();
  return search.judged();
}

}  // namespace

TEST_CASE("the gaps of a model's layers have the same number of classes at any depth") {
  const Classes few = classes_of(gpt(6)), many = classes_of(gpt(40));
  CHECK(few.classes.size() == many.classes.size());
  CHECK(few.gaps.size() * 5 < many.gaps.size());
  std::size_t members = 0;
  for (const GapClass& one : many.classes) members += one.members.size();
  CHECK(members == many.gaps.size());
}

TEST_CASE("the gaps of activations of one class are nested") {
  const Trace trace = gpt(6);
  const Classes found = classes_of(trace);
  std::size_t nested = 0;
  for (const GapClass& one : found.classes) {
    const Gap& first = found.gaps[one.members.front()];
    const Phase released = trace.op(OpId{first.release}).phase;
    if (first.crosses || released != Phase::kForward || trace.op(OpId{first.due}).phase != Phase::kBackward) continue;
    if (trace.buffer(trace.version(first.out).buffer).kind != BufferKind::kActivation) continue;
    for (std::size_t i = 1; i < one.members.size(); ++i, ++nested) {
      const Gap &outer = found.gaps[one.members[i - 1]], &inner = found.gaps[one.members[i]];
      CHECK((outer.release < inner.release && inner.due < outer.due));
    }
  }
  CHECK(nested > 30);
}

TEST_CASE("recomputing content costs its op and the ops of its absent inputs") {
  TraceBuilder build;
  const BufferId kept = build.existing({.size = 1_MiB});
  const BufferId freed = build.alloc({.size = 1_MiB}), a = build.alloc({.size = 1_MiB});
  build.run({.duration = 5_us}, {{kept}, {freed, Access::kWrite}});
  build.run({.duration = 7_us}, {{freed}, {kept}, {a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 1_MiB}), loaded = build.alloc({.size = 1_MiB});
  build.run({.duration = 11_us}, {{a}, {b, Access::kWrite}});
  build.free(freed);
  build.run({.kind = OpKind::kSource, .duration = 1_us}, {{loaded, Access::kWrite}});
  build.run({.duration = 1_us}, {});
  build.run({.duration = 1_us}, {{a}, {b}, {loaded}});
  const Trace trace = build.finish();
  const std::vector<Gap> gaps = find_gaps(trace, 1_B);
  const std::vector<Nanos> costs = Reruns(trace, gaps).costs();
  const auto cost_of = [&](BufferId buffer) {
    for (std::size_t i = 0; i < gaps.size(); ++i)
      if (!gaps[i].crosses && trace.version(gaps[i].out).buffer == buffer) return costs[i];
    return Nanos{-1};
  };
  CHECK(cost_of(a) == 12_us);  // includes the op of the freed input
  CHECK(cost_of(b) == 11_us);  // a is resident
  CHECK(cost_of(loaded) == Reruns::kImpossible);
  for (std::size_t i = 0; i < gaps.size(); ++i)
    if (gaps[i].crosses) CHECK(costs[i] == Reruns::kImpossible);
}

TEST_CASE("a class drops its longest gaps first and keeps its shortest") {
  const Trace trace = gpt(12);
  const Classes found = classes_of(trace);
  const RunSpec spec{
      .pool = "ideal", .capacity = Bytes{trace.ideal_peak().count() * 7 / 10}, .machine = find_machine("a100-pcie4")};
  std::vector<GapPlan> judged;
  TiedSearch search{found.circle,
                    found.gaps,
                    found.classes,
                    Reruns(trace, found.gaps).costs(),
                    spec.machine,
                    spec.capacity,
                    [&](const GapPlan& plan) {
                      judged.push_back(plan);
                      Result result;
                      result.outcome = Outcome::kOk;
                      result.totals.makespan = Nanos{1'000 + static_cast<std::int64_t>(judged.size() * 7919 % 97)};
                      return result;
                    },
                    kNeverHopeless,
                    40};
  search.run();
  CHECK(search.judged() == 40);
  REQUIRE(judged.size() == 41);  // the first plan does nothing
  CHECK(judged.front() == GapPlan{});
  bool drops = false, copies = false;
  for (const GapPlan& plan : judged) {
    const std::set<std::uint32_t> dropped{plan.dropped.begin(), plan.dropped.end()};
    std::set<std::uint32_t> copied;
    for (const PlannedGap& each : plan.copied) CHECK(copied.insert(each.gap).second);
    for (const std::uint32_t i : dropped) CHECK_FALSE(copied.contains(i));
    drops |= !dropped.empty(), copies |= !copied.empty();
    if (dropped.empty() && copied.empty()) continue;  // the plan does nothing
    // The remaining load fits, and the kept gaps of each class are shorter than its dropped ones.
    std::vector<std::uint32_t> away{plan.dropped};
    away.insert(away.end(), copied.begin(), copied.end());
    CHECK(peak_without(found.circle, found.gaps, away) <= spec.capacity);
    for (const GapClass& one : found.classes) {
      bool kept = false;
      for (const std::uint32_t i : one.members) {
        const bool is_kept = !dropped.contains(i) && !copied.contains(i);
        CHECK_FALSE((kept && dropped.contains(i)));
        kept |= is_kept;
      }
    }
  }
  CHECK(drops);
  CHECK(copies);
}

TEST_CASE("the number of tried plans does not depend on the model's depth, and no plan is tried twice") {
  constexpr std::int64_t kTries = 500;
  for (const std::int64_t layers : {6, 24}) {
    INFO(layers);
    const Trace trace = gpt(layers);
    std::vector<GapPlan> judged;
    const auto never_again = [&](const GapPlan& plan) {
      CHECK(std::find(judged.begin(), judged.end(), plan) == judged.end());
      judged.push_back(plan);
    };
    CHECK(judged_where_all_are_alike(trace, never_again, kNeverHopeless, kTries) == kTries);
  }
}

TEST_CASE("hopeless plans are not judged, and the search still ends") {
  const Trace trace = gpt(6);
  for (const std::size_t most : {0u, 10u}) {
    INFO(most);
    std::size_t asked = 0;
    const auto hopeless = [&](const std::vector<std::uint32_t>& dropped) { return ++asked, dropped.size() > most; };
    CHECK(judged_where_all_are_alike(
              trace, [&](const GapPlan& plan) { CHECK(plan.dropped.size() <= most); }, hopeless, 50) <= 50);
    CHECK(asked > 0);
  }
}

TEST_CASE("a plan whose reruns alone must make it too slow is slower than the best plan when it is run") {
  const Trace trace = gpt(6);
  const Classes found = classes_of(trace);
  const std::vector<Nanos> costs = Reruns(trace, found.gaps).costs();
  RunSpec spec{.pool = "ideal", .capacity = trace.ideal_peak() * 95 / 100, .machine = find_machine("a100-pcie4")};
  spec.overhead_limit.reset();
  Trials trials{trace, spec, 100, OnDemand::kCopy};
  REQUIRE(trials.best_result().outcome == Outcome::kOk);
  std::mt19937 random{1};
  int losing = 0, hopeful = 0;
  for (int round = 0; round < 60; ++round) {
    GapPlan plan;
    for (std::uint32_t i = 0; i < found.gaps.size(); ++i)
      if (costs[i] != Reruns::kImpossible && static_cast<int>(random() % 120) < round) plan.dropped.push_back(i);
    const bool must_lose = trials.must_lose(found.gaps, plan.dropped);
    const Result result =
        judge(trace, spec, follow_draft(draft_of(found.gaps, plan, trace.ops().size()), OnDemand::kCopy));
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.totals.recompute >= least_rerun(trace, found.gaps, plan.dropped));
    if (must_lose) CHECK(result.totals.makespan > trials.best_result().totals.makespan);
    CHECK((trials.add(found.gaps, plan).outcome == Outcome::kTimeLimit) >= must_lose);
    ++(must_lose ? losing : hopeful);
  }
  CHECK(losing > 10);
  CHECK(hopeful > 10);
}

TEST_CASE("if nothing repeats, folding does not change the result") {
  for (const char* const name : {"vgg16", "unet"}) {
    INFO(name);
    const Trace trace = load_trace(paths::source_folder() + "/traces/samples/" + name + ".tide");
    RunSpec spec{.policy = "tide-fold(effort=30)",
                 .capacity = trace.ideal_peak() * 6 / 10,
                 .machine = find_machine("a100-pcie4")};
    const Result on = simulate(trace, spec, true);
    spec.policy = "tide-fold(effort=30,fold=off)";
    const Result off = simulate(trace, spec, true);
    CHECK(on.outcome == Outcome::kOk);
    CHECK(on.totals == off.totals);
    CHECK(on.realised == off.realised);
  }
}

}  // namespace tidepool::tied_search_test
