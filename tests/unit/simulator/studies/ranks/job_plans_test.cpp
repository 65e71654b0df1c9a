// Jobs whose ranks follow plans. Copies and reruns cost the job no time while the rank would wait for others.
#include "simulator/studies/ranks/job_plans.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/job_case.hpp"
#include "tests/refusal.hpp"

namespace tidepool::job_plans_test {

using tests::job_of;
using tests::refusal;

namespace {

/// Machine whose link takes 5 us for 100 B in each direction.
Machine slow_link() {
  Machine machine;
  machine.name = "slow";
  machine.capacity = 1000_B;
  machine.h2d = machine.d2h = {.rate = BytesPerSecond{20'000'000}, .latency = 0_us};
  return machine;
}

/// Ops of 10 us: the first makes a, the second makes b; then a collective; then the last reads a. a and b have 100 B.
Trace keeping_rank() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
  build.run({.duration = 10_us}, {{a, Access::kWrite, Evidence::kSchema}});
  const BufferId b = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
  build.run({.duration = 10_us}, {{b, Access::kWrite, Evidence::kSchema}});
  build.free(b);
  build.run({.kind = OpKind::kCollective}, {});
  build.run({.duration = 10_us}, {{a, Access::kRead, Evidence::kSchema}});
  build.free(a);
  return build.finish();
}

/// A rank that makes a small buffer in `before`.
Trace other_rank(Nanos before) {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 8_B});
  build.run({.duration = before}, {{a, Access::kWrite, Evidence::kSchema}});
  build.run({.kind = OpKind::kCollective}, {});
  build.free(a);
  return build.finish();
}

JobPlans planned(Nanos other, const char* policy, Bytes capacity, std::size_t threads = 1) {
  const LoadedJob job = job_of({keeping_rank(), other_rank(other)}, {2_us}, {0_us, 0_us});
  const auto spec = [&](const Trace&) {
    return RunSpec{.pool = "ideal", .policy = policy, .capacity = capacity, .machine = slow_link()};
  };
  return plan_job(job, "job.json", {}, spec, threads);
}

}  // namespace

TEST_CASE("a rank that waits for another rank copies meanwhile, at no cost for the job") {
  // The collective ends at 40 + 2 us. The rank arrives at 25 us instead of 20 us, and a is back at 30 us.
  const JobPlans plans = planned(40_us, "tide(with=swap,least=1B)", 150_B);
  CHECK(plans.baseline == 52_us);
  CHECK(plans.makespan == 52_us);
  CHECK(plans.bound == 52_us);
  CHECK(plans.ranks[0].result.totals.swap_out == 100_B);
  CHECK(plans.ranks[0].waited == 20_us);
  CHECK(plans.ranks[0].waits == 15_us);
  CHECK(plans.ranks[0].copies == 10_us);
  CHECK(plans.ranks[0].exposed == 0_us);  // b waited 5 us for a's place; the rank waits for the other one anyway
  CHECK(plans.ranks[1].waited == 0_us);
  CHECK(plans.ranks[1].ends == 42_us);
}

TEST_CASE("a rank that is late because of its plan makes the others wait") {
  // The other rank waits for the first one from 12 us until 25 us instead of 20 us. The first one continues when a is
  // back, at 30 us.
  const JobPlans plans = planned(12_us, "tide(with=swap,least=1B)", 150_B);
  CHECK(plans.baseline == 32_us);
  CHECK(plans.makespan == 40_us);
  CHECK(plans.ranks[1].waited == 8_us);
  CHECK(plans.ranks[1].waits == 13_us);
  CHECK(plans.ranks[1].ends == 27_us);
  CHECK(plans.ranks[0].copies == 10_us);
  CHECK(plans.ranks[0].exposed == 8_us);  // 10 to 15, and 27 to 30
  REQUIRE(plans.bound);
  CHECK(*plans.bound > 32_us);
  CHECK(*plans.bound <= 40_us);
}

TEST_CASE("time in which several streams wait for one copy is exposed once") {
  // As in the test above, but ops on two streams read a after the collective: both wait from 27 to 30 us. They cannot
  // start before 27 us, so the second stream's time before that is no wait for the copy.
  TraceBuilder build;
  const StreamId side = build.stream("1");
  const BufferId a = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
  build.run({.duration = 10_us}, {{a, Access::kWrite, Evidence::kSchema}});
  const BufferId b = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
  build.run({.duration = 10_us}, {{b, Access::kWrite, Evidence::kSchema}});
  build.free(b);
  build.run({.kind = OpKind::kCollective}, {});
  build.order(OpId{2}, OpId{3});
  build.run({.stream = side, .duration = 10_us}, {{a, Access::kRead, Evidence::kSchema}});
  build.run({.duration = 10_us}, {{a, Access::kRead, Evidence::kSchema}});
  build.free(a);
  const LoadedJob job = job_of({build.finish(), other_rank(12_us)}, {2_us}, {0_us, 0_us});
  const auto spec = [&](const Trace&) {
    return RunSpec{.pool = "ideal", .policy = "tide(with=swap,least=1B)", .capacity = 150_B, .machine = slow_link()};
  };
  const JobPlans plans = plan_job(job, "job.json", {}, spec, 1);
  CHECK(plans.baseline == 32_us);
  CHECK(plans.makespan == 40_us);
  CHECK(plans.ranks[0].copies == 10_us);
  CHECK(plans.ranks[0].exposed == 8_us);  // 10 to 15, and 27 to 30
}

TEST_CASE("a rank that shares its link with another rank copies at its share of the rate") {
  // As in the first test, but each copy takes 10 us: the rank arrives at 30 us, and a is back at 40 us.
  const LoadedJob job = job_of({keeping_rank(), other_rank(40_us)}, {2_us}, {0_us, 0_us});
  const auto spec = [](const Trace&) {
    RunSpec run{.pool = "ideal", .policy = "tide(with=swap,least=1B)", .capacity = 150_B, .machine = slow_link()};
    run.machine.sharing.link = 2;
    return run;
  };
  const JobPlans plans = plan_job(job, "job.json", {}, spec, 1);
  CHECK(plans.makespan == 52_us);
  CHECK(plans.ranks[0].waits == 10_us);
  CHECK(plans.ranks[0].copies == 20_us);
}

TEST_CASE("the time of a rank's copies includes the latency of each copy, and of each piece of a copy") {
  // Ops of 10 us: the first makes a and b (100 B each), the second makes c (200 B), and the last reads a and b. A copy
  // of 100 B takes 5 us. The memory holds 200 B.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
  const BufferId b = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
  build.run({.duration = 10_us}, {{a, Access::kWrite, Evidence::kSchema}, {b, Access::kWrite, Evidence::kSchema}});
  const BufferId c = build.alloc({.size = 200_B, .kind = BufferKind::kActivation});
  build.run({.duration = 10_us}, {{c, Access::kWrite, Evidence::kSchema}});
  build.free(c);
  build.run({.kind = OpKind::kCollective}, {});
  build.run({.duration = 10_us}, {{a, Access::kRead, Evidence::kSchema}, {b, Access::kRead, Evidence::kSchema}});
  build.free(a);
  build.free(b);
  const LoadedJob job = job_of({build.finish(), other_rank(100_us)}, {2_us}, {0_us, 0_us});
  const auto copies = [&](Bytes chunk) {
    const auto spec = [&](const Trace&) {
      RunSpec run{.pool = "ideal", .policy = "lru-swap", .capacity = 200_B, .machine = slow_link()};
      run.machine.h2d.latency = run.machine.d2h.latency = 1_us;
      run.machine.chunk = chunk;
      return run;
    };
    const JobPlans plans = plan_job(job, "job.json", {}, spec, 1);
    CHECK(plans.ranks[0].result.totals.swap_out == 200_B);
    CHECK(plans.ranks[0].result.totals.swap_in == 200_B);
    return plans.ranks[0].copies;
  };
  CHECK(copies(0_B) == 24_us);   // four copies of 1 + 5 us
  CHECK(copies(50_B) == 28_us);  // each copy has two pieces of 1 + 2.5 us
}

namespace {

/// Ops: `first` makes a (100 B) in 6 us, the second makes b (100 B) in 10 us; then a collective; the last reads a.
Trace choosing_rank() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
  build.run({.duration = 6_us}, {{a, Access::kWrite, Evidence::kSchema}});
  const BufferId b = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
  build.run({.duration = 10_us}, {{b, Access::kWrite, Evidence::kSchema}});
  build.free(b);
  build.run({.kind = OpKind::kCollective}, {});
  build.run({.duration = 10_us}, {{a, Access::kRead, Evidence::kSchema}});
  build.free(a);
  return build.finish();
}

/// Its first op brings a (300 B) in 2 us; the second makes b (300 B) in 1 us; the third reads a in 2 us; then a
/// collective.
Trace late_rank() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 300_B, .kind = BufferKind::kInput});
  build.run({.kind = OpKind::kSource, .duration = 2_us}, {{a, Access::kWrite, Evidence::kSchema}});
  const BufferId b = build.alloc({.size = 300_B, .kind = BufferKind::kActivation});
  build.run({.duration = 1_us}, {{b, Access::kWrite, Evidence::kSchema}});
  build.free(b);
  build.run({.duration = 2_us}, {{a, Access::kRead, Evidence::kSchema}});
  build.free(a);
  build.run({.kind = OpKind::kCollective}, {});
  return build.finish();
}

}  // namespace

TEST_CASE("a rank is planned again for the waits that the plans of other ranks leave it") {
  // Alone, the first rank recomputes a: its last op runs from 24 to 34 us. If it copied a, b would begin at 11 us, a
  // would be back at 26 us, and the last op would end at 36 us. But the second rank has to copy: it arrives at
  // 2 + 15 + 1 + 15 + 2 = 35 us, and the collective ends at 37 us. Then the first rank recomputes until 43 us, whereas
  // a copy would be back long before.
  const LoadedJob job = job_of({choosing_rank(), late_rank()}, {2_us}, {0_us, 0_us});
  const auto spec = [&](const Trace& trace) {
    return RunSpec{.pool = "ideal",
                   .policy = "tide(least=1B)",
                   .capacity = trace.buffers()[0].size * 3 / 2,
                   .machine = slow_link()};
  };
  const JobPlans plans = plan_job(job, "job.json", {}, spec, 1);
  CHECK(plans.baseline == 28_us);
  CHECK(plans.makespan == 47_us);
  CHECK(plans.ranks[0].result.totals.swap_in == 100_B);
  CHECK(plans.ranks[0].result.totals.recompute == 0_us);
  CHECK(plans.ranks[1].ends == 37_us);
}

TEST_CASE("ranks that do the same have one plan, and run collectives again only if all ranks do") {
  // The collective makes a (100 B); b does not fit beside it. Dropping a is the only way without copies.
  const auto gathering_rank = [](Nanos last) {
    TraceBuilder build;
    const BufferId a = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
    build.run({.kind = OpKind::kCollective}, {{a, Access::kWrite, Evidence::kSchema}});
    const BufferId b = build.alloc({.size = 100_B, .kind = BufferKind::kActivation});
    build.run({.duration = 10_us}, {{b, Access::kWrite, Evidence::kSchema}});
    build.free(b);
    build.run({.duration = last}, {{a, Access::kRead, Evidence::kSchema}});
    build.free(a);
    return build.finish();
  };
  const auto spec = [](const Trace&) {
    return RunSpec{.pool = "ideal", .policy = "tide-remat", .capacity = 150_B, .machine = slow_link()};
  };
  const auto plans_of = [&](Nanos last, Nanos start) {
    const LoadedJob job = job_of({gathering_rank(10_us), gathering_rank(last)}, {2_us}, {0_us, start});
    return plan_job(job, "job.json", {}, spec, 1);
  };
  const JobPlans same = plans_of(10_us, 0_us);
  CHECK(same.ranks[1].like == 0);
  CHECK(same.makespan == 24_us);  // the collective runs twice
  CHECK(same.ranks[1].waits == 0_us);
  const JobPlans others = plans_of(11_us, 0_us);
  CHECK(others.ranks[1].like == 1);
  CHECK(others.ranks[0].result.outcome == Outcome::kOutOfMemory);
  CHECK_FALSE(others.bound);
  const JobPlans later = plans_of(10_us, 1_us);
  CHECK(later.ranks[1].like == 0);
  CHECK(later.ranks[0].result.outcome == Outcome::kOutOfMemory);
}

TEST_CASE("plans are made for the job with the requested changes") {
  const LoadedJob job = job_of({keeping_rank(), other_rank(12_us)}, {2_us}, {0_us, 0_us});
  const auto spec = [](const Trace&) { return RunSpec{.pool = "ideal", .machine = slow_link()}; };
  const JobPlans plans = plan_job(job, "job.json", {.ranks = {1}, .factor = 5}, spec, 1);
  CHECK(plans.baseline == 72_us);  // the other rank arrives at 60 us
  CHECK(plans.makespan == 72_us);
}

TEST_CASE("a job has no time with plans if a rank has no plan, and no bound if none exists") {
  const JobPlans plans = planned(12_us, "tide(with=swap,least=1B)", 90_B);
  CHECK(plans.ranks[0].result.outcome != Outcome::kOk);
  CHECK(plans.ranks[1].result.outcome == Outcome::kOk);
  CHECK_FALSE(plans.makespan);
  CHECK_FALSE(plans.bound);
  CHECK(plans.baseline == 32_us);
}

TEST_CASE("without policies and limits a job takes its simulated time, on any number of threads") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const LoadedJob job = tests::random_job(seed);
    const std::vector<RankProgram> programs = rank_programs(job, "job.json");
    const JobTimes times = simulate_job(job, "job.json", programs, recorded_costs(job.job), 1);
    const auto spec = [](const Trace&) { return RunSpec{.pool = "ideal", .machine = slow_link()}; };
    const JobPlans plans = plan_job(job, "job.json", {}, spec, 1);
    CHECK(plans.baseline == times.makespan);
    CHECK(plans.makespan == times.makespan);
    CHECK(plans.bound == times.makespan);
    for (const std::size_t threads : {2U, 3U, 8U})
      CHECK(plans_json("job.json", plan_job(job, "job.json", {}, spec, threads)) == plans_json("job.json", plans));
  }
}

TEST_CASE("plans of a job are the same on any number of threads") {
  const std::string alone = plans_json("job.json", planned(12_us, "tide(with=swap,least=1B)", 150_B, 1));
  for (const std::size_t threads : {2U, 8U})
    CHECK(plans_json("job.json", planned(12_us, "tide(with=swap,least=1B)", 150_B, threads)) == alone);
}

TEST_CASE("a rank without buffers has no plan") {
  const LoadedJob job = job_of({tests::rank_of({10_us, 0_us}), tests::rank_of({10_us, 0_us})}, {2_us}, {0_us, 0_us});
  const auto spec = [](const Trace&) { return RunSpec{}; };
  CHECK(refusal([&] { plan_job(job, "job.json", {}, spec, 1); }) ==
        "job.json: rank 0: the trace has no buffers; expected a recording of memory");
}

}  // namespace tidepool::job_plans_test
