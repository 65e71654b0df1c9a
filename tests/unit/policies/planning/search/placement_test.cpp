// Places for plans that were made without addresses, by counting bytes.
#include "policies/planning/search/placement.hpp"

#include <string>

#include "policies/planning/search/improve_placed.hpp"
#include "policies/planning/search/limit_search.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/paths.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::placement_test {

TEST_CASE("a limit falls by three quarters of the excess until it is low enough, and then the interval is halved") {
  LimitSearch limits{1'000_B, 2_B};
  limits.is_high(100_B);
  CHECK(limits.limit() == 925_B);
  limits.is_high(1_B);
  CHECK(limits.limit() == 917_B);  // falls by at least four steps of 2 B
  limits.is_low();
  CHECK(limits.limit() == 921_B);
  limits.is_high(1_B);
  CHECK(limits.limit() == 919_B);
  CHECK_FALSE(limits.done());
  limits.is_low();
  CHECK(limits.done());
}

TEST_CASE("a limit that was too low rises halfway to the lowest one that was too high") {
  LimitSearch limits{1'000_B, 2_B};
  limits.is_high(80_B);
  limits.is_low();
  CHECK(limits.limit() == 970_B);
  limits.is_high(10_B);
  CHECK(limits.limit() == 955_B);
  limits.is_low();
  CHECK(limits.limit() == 962_B);
  CHECK_FALSE(limits.done());
}

TEST_CASE("bytes above the capacity count as if they were swapped out and in twice") {
  RunSpec spec{.pool = "best-fit", .policy = "none", .capacity = 1'000_B};
  spec.machine.h2d.rate = BytesPerSecond{1'000'000'000};  // 1 B/ns
  spec.machine.d2h.rate = BytesPerSecond{500'000'000};
  Result counted;
  counted.totals.makespan = 70_ns;
  CHECK(with_excess(counted, 1'010_B, spec).totals.makespan == 70_ns + 20_ns + 40_ns);
  CHECK(with_excess(counted, 900_B, spec).totals.makespan == 70_ns);
}

TEST_CASE("a first limit that is low enough is the last") {
  LimitSearch limits{1'000_B, 2_B};
  limits.is_low();
  CHECK(limits.done());
}

TEST_CASE(
    "a plan for which no places are found is changed until places are found, if it is then faster than in the pool") {
  if (!tests::optimised()) return;
  const Trace trace = load_trace(paths::source_folder() + "/traces/samples/vgg16.tide");
  RunSpec spec{.pool = "best-fit", .policy = "none", .capacity = trace.ideal_peak() * 40 / 100};
  spec.machine = find_machine("a100-pcie4");
  Placer placer{trace, spec, OnDemand::kCopyOrDrop, *granule_of(spec.pool)};
  const StepCircle circle = step_circle(trace);
  const std::vector<Gap> gaps = find_gaps_of_run(trace, 64_KiB, circle, spec);
  const Reruns reruns{trace, gaps};
  const std::vector<Nanos> costs = reruns.costs();
  const Planning planning{trace, circle, gaps, reruns, spec.machine, spec.capacity};
  const std::optional<MixedPlan> plan = schedule_mixed(
      planning, select_by_price(planning, costs, 0, SlotLimits(circle.size(), spec.capacity)), CopyOut::kWhenFree);
  REQUIRE(plan);
  const GapDraft draft = draft_of(gaps, plan->plan, trace.ops().size());
  const Placement start = find_placement(placer, spec, draft, spec.capacity);
  CHECK(start.height > spec.capacity);
  CHECK_FALSE(start.placed);

  const Result in_pool = judge(trace, spec, follow_draft(draft, OnDemand::kCopyOrDrop));
  const std::optional<Placer::Placed> placed =
      improve_placed(placer, spec, planning, costs, {plan->plan, spec.capacity, 300, 1}, in_pool);
  REQUIRE(placed);
  CHECK(placed->result.outcome == Outcome::kOk);
  CHECK(placed->result.totals.footprint <= spec.capacity);
  CHECK(better(placed->result, in_pool));
  CHECK(judge(trace, spec, placed->draft.answer()).totals == placed->result.totals);

  // Without effort, places are those of one pass.
  const Placer::Counted counted = placer.count(draft, spec.capacity, {});
  const PlaceLog& log = *counted.log;
  const Placer without{trace, spec, OnDemand::kCopyOrDrop, *granule_of(spec.pool), 0};
  const std::vector<Bytes> passed = find_places(log, *granule_of(spec.pool), spec.capacity, 0).offsets;
  CHECK(without.pack(log, Placer::Packing::kHard).offsets == passed);
  CHECK(placer.pack(log, Placer::Packing::kHard).offsets != passed);
}

}  // namespace tidepool::placement_test
