// Simulation of jobs: collectives as rendezvous, the critical path over ranks, and waits between ranks.
#include "simulator/studies/ranks/rendezvous.hpp"

#include "simulator/studies/ranks/job_path.hpp"
#include "simulator/studies/ranks/job_run.hpp"
#include "tests/catch.hpp"
#include "tests/job_case.hpp"
#include "tests/refusal.hpp"

namespace tidepool::rendezvous_test {

using tests::job_of;
using tests::random_job;
using tests::rank_of;
using tests::refusal;

namespace {

JobTimes run(const LoadedJob& job, std::size_t threads = 1) {
  return simulate_job(job, "job.json", rank_programs(job, "job.json"), recorded_costs(job.job), threads);
}

// Rank 0: 10 us | C0 | 5 us | C1 | 20 us | C2. Rank 1, which begins at 3 us: 4 us | C0 | 15 us | C1 | 1 us | C2.
LoadedJob two_ranks() {
  return job_of({rank_of({10_us, 0_us, 5_us, 0_us, 20_us, 0_us}), rank_of({4_us, 0_us, 15_us, 0_us, 1_us, 0_us})},
                {2_us, 3_us, 4_us}, {0_us, 3_us});
}

}  // namespace

TEST_CASE("a collective begins when the last rank has arrived, and ends for all ranks together") {
  const JobTimes times = run(two_ranks());
  // Arrivals in us. C0: rank 0 at 10, rank 1 at 3 + 4 = 7. C1: 12 + 5 = 17 and 12 + 15 = 27. C2: 30 + 20 = 50 and 31.
  const std::vector<CollectiveTimes> expected{{10_us, 12_us, 0}, {27_us, 30_us, 1}, {50_us, 54_us, 0}};
  REQUIRE(times.collectives.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(times.collectives[i].begin == expected[i].begin);
    CHECK(times.collectives[i].end == expected[i].end);
    CHECK(times.collectives[i].last == expected[i].last);
  }
  CHECK(times.makespan == 54_us);
  CHECK(times.ranks[1][1].start == 7_us);
  CHECK(times.ranks[1][1].end == 12_us);
}

TEST_CASE("the critical path goes through the rank that arrives last") {
  const LoadedJob job = two_ranks();
  const JobPath path = critical_path_of(job, rank_programs(job, "job.json"), run(job));
  REQUIRE(path.parts.size() == 3);
  const auto part = [&](std::size_t i) {
    return std::tuple{path.parts[i].rank, path.parts[i].begin, path.parts[i].end, path.parts[i].left_at};
  };
  CHECK(part(0) == std::tuple{std::size_t{0}, 0_us, 10_us, 0U});
  CHECK(part(1) == std::tuple{std::size_t{1}, 10_us, 27_us, 1U});
  CHECK(part(2) == std::tuple{std::size_t{0}, 27_us, 54_us, RankOp::kNone});
  CHECK(path.parts[1].shares.collective == 2_us);
  CHECK(path.parts[1].shares.ops == 15_us);
  CHECK(path.of_rank[0].ops == 30_us);
  CHECK(path.of_rank[0].collective == 7_us);
}

TEST_CASE("waits are counted for the rank that waits and for the rank that is late") {
  const LoadedJob job = two_ranks();
  const JobWaits waits = waits_of(job, run(job), rank_programs(job, "job.json"));
  CHECK(waits.by[0] == std::vector{0_us, 10_us});         // C1: 27 - 17
  CHECK(waits.by[1] == std::vector{3_us + 19_us, 0_us});  // C0: 10 - 7; C2: 50 - 31
  CHECK(waits.of(1) == 22_us);
  CHECK(waits.caused(1) == 10_us);
}

TEST_CASE("launches of the host after a wait move with the end of the collective") {
  // In the recording, the collective ended at 25 us, the host continued at 27 us and launched a kernel at 30 us, 6 us
  // before it ran. Here rank 1 arrives at 8 us and the collective takes 5 us: it ends at 13 us, the host continues at
  // 15 us and launches at 18 us.
  TraceBuilder build;
  build.run({.kind = OpKind::kCollective, .start = 5_us, .launch = 0_us, .duration = 20_us}, {});
  build.run({.kind = OpKind::kHostWait, .start = 25_us, .launch = 1_us, .duration = 2_us}, {});
  build.run({.start = 36_us, .launch = 30_us, .duration = 4_us}, {});
  const LoadedJob job = job_of({build.finish(), rank_of({8_us, 0_us})}, {5_us}, {0_us, 0_us});
  const JobTimes times = run(job);
  CHECK(times.collectives[0].end == 13_us);
  CHECK(times.ranks[0][2].launch == 18_us);
  CHECK(times.ranks[0][2].start == 24_us);
  CHECK(times.makespan == 28_us);
}

TEST_CASE("where a model estimated the op times, the host takes 40 us for each op, whatever a dry run's host took") {
  TraceBuilder build;
  build.run({.start = 900_us, .launch = 900_us, .duration = 100_us}, {});
  build.run({.start = 2'050_us, .launch = 2_ms, .duration = 10_us}, {});
  build.run({.kind = OpKind::kCollective, .start = 3_ms, .launch = 3_ms, .duration = 5_us}, {});
  build.meta() = {{"times", "h200"}, {"times_error", "10 %"}};
  const LoadedJob job = job_of({build.finish(), rank_of({8_us, 0_us})}, {5_us}, {0_us, 0_us});
  const JobTimes times = run(job);
  CHECK(times.ranks[0][0].start == 40_us);
  CHECK(times.ranks[0][1].start == 140_us);  // issued at 80 us, after the op before on its stream
  CHECK(times.ranks[0][2].launch == 120_us);
  CHECK(times.makespan == 155_us);
}

TEST_CASE("a rank whose own time is halved arrives earlier and waits for another rank") {
  const LoadedJob job = two_ranks();
  std::vector<RankProgram> programs = rank_programs(job, "job.json");
  programs[0] = scaled(std::move(programs[0]), 0.5, OwnTime::kAll);
  // Arrivals and ends in us. C0: 5 and 7, to 9. C1: 9 + 2.5 and 24, to 27. C2: 27 + 10 and 28, to 41.
  const JobTimes times = simulate_job(job, "job.json", programs, recorded_costs(job.job), 1);
  CHECK(times.collectives[0].last == 1);
  CHECK(times.makespan == 41_us);
  programs[0] = scaled(rank_programs(job, "job.json")[0], 0.5, OwnTime::kHost);  // no effect: its host takes no time
  CHECK(simulate_job(job, "job.json", programs, recorded_costs(job.job), 1).makespan == 54_us);
}

TEST_CASE("collectives in different orders on two ranks are refused, unless they are on different streams") {
  const auto rank = [](std::size_t first, std::size_t second) {
    TraceBuilder build{{"0", "1"}};
    build.run({.stream = StreamId{first}, .kind = OpKind::kCollective}, {});
    build.run({.stream = StreamId{second}, .kind = OpKind::kCollective}, {});
    return build.finish();
  };
  LoadedJob job = job_of({rank(0, 0), rank(0, 0)}, {1_us, 2_us}, {0_us, 0_us});
  job.job.collectives[1].name = "all_to_all";
  std::swap(job.job.collectives[0].ops[1], job.job.collectives[1].ops[1]);
  CHECK(refusal([&] { run(job); }) ==
        "job.json: no rank can go on: rank 0 is in all_reduce (collective 0) and waits for rank 1; rank 1 is in "
        "all_to_all (collective 1) and waits for rank 0; expected one order on all ranks");
  job.traces = {rank(0, 1), rank(1, 0)};
  CHECK(run(job).makespan == 2_us);
}

TEST_CASE("a collective that is missing in the job file is refused") {
  LoadedJob job = two_ranks();
  job.job.collectives.pop_back();
  CHECK(refusal([&] { run(job); }) ==
        "job.json: rank 0: op 5, '', is a collective of no group; expected all to be joined");
}

TEST_CASE("a job has the same times on any number of threads, and its critical path adds up to its makespan") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    const LoadedJob job = random_job(seed);
    const JobTimes times = run(job);
    for (const std::size_t threads : std::vector<std::size_t>{2, 3, 8}) {
      const JobTimes others = run(job, threads);
      CHECK(others.makespan == times.makespan);
      for (std::size_t i = 0; i < times.collectives.size(); ++i) {
        CHECK(others.collectives[i].end == times.collectives[i].end);
        CHECK(others.collectives[i].last == times.collectives[i].last);
      }
    }
    const JobPath path = critical_path_of(job, rank_programs(job, "job.json"), times);
    Nanos at;
    for (const PathPart& part : path.parts) {
      CHECK(part.begin == at);
      CHECK(part.shares.total() == part.end - part.begin);
      at = part.end;
    }
    CHECK(at == times.makespan);
    CHECK(path.parts.front().shares.before == job.job.ranks[path.parts.front().rank].start);
  }
}

TEST_CASE("only collectives with recorded times are compared with the recording") {
  // A kernel of 5 ms, and a collective of 1 ms that ends at 6 ms; rank 0 may have recorded that it ends at 5 ms.
  const auto rank = [](Nanos recorded) {
    TraceBuilder build;
    build.run({.duration = 5_ms}, {});
    build.run({.kind = OpKind::kCollective, .start = recorded, .duration = 1_ms}, {});
    return build.finish();
  };
  const auto off = [&](Nanos recorded) {
    return run_job(job_of({rank(recorded), rank(Nanos{-1})}, {1_ms}, {0_ms, 0_ms}), "job.json", {}, 1).off;
  };
  CHECK_FALSE(off(Nanos{-1}));
  CHECK(off(4_ms) == 1_ms);
}

}  // namespace tidepool::rendezvous_test
