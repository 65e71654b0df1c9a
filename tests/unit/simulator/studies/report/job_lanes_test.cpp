// Lanes of a job's ranks, and the rank that exceeds its memory first.
#include "simulator/studies/report/job_lanes.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/job_case.hpp"

namespace tidepool::job_lanes_test {

using Json = nlohmann::ordered_json;

namespace {

/// A rank with 100 B from before the step. An op makes `size` bytes in `before`; after a collective, an op makes as
/// many again in 10 us.
Trace growing_rank(Nanos before, Bytes size) {
  TraceBuilder build;
  build.existing({.size = 100_B});
  const BufferId a = build.alloc({.size = size});
  build.run({.duration = before}, {{a, Access::kWrite, Evidence::kSchema}});
  build.run({.kind = OpKind::kCollective}, {});
  const BufferId b = build.alloc({.size = size});
  build.run({.duration = 10_us}, {{b, Access::kWrite, Evidence::kSchema}});
  build.free(a);
  build.free(b);
  return build.finish();
}

ReportedJob shown(Bytes first, Bytes second) {
  ReportedJob job{.name = "job.json",
                  .job = tests::job_of({growing_rank(20_us, first), growing_rank(30_us, second)}, {4_us}, {0_us, 0_us}),
                  .result = {},
                  .capacities = {150_B, 150_B}};
  job.result = run_job(job.job, job.name, {}, 1);
  return job;
}

}  // namespace

TEST_CASE("a lane has the times in which the rank computes, waits and moves data") {
  // Rank 0 arrives at 20 us and waits for rank 1 until 30 us; the collective takes 4 us.
  const ReportedJob job = shown(10_B, 10_B);
  const JobResult& result = job.result;
  const auto lane = [&](Nanos finest) {
    return lane_of(result.programs[0], result.times.ranks[0], result.times.collectives, finest);
  };
  CHECK(lane({}).computes == std::vector<Span>{{0_us, 20_us}, {34_us, 44_us}});
  CHECK(lane({}).waits == std::vector<Span>{{20_us, 30_us}});
  CHECK(lane({}).moves == std::vector<Span>{{30_us, 34_us}});
  CHECK(lane(13_us).computes == std::vector<Span>{{0_us, 20_us}, {34_us, 44_us}});
  CHECK(lane(14_us).computes == std::vector<Span>{{0_us, 44_us}});
}

TEST_CASE("memory is exceeded when the op starts whose buffer does not fit") {
  const ReportedJob job = shown(30_B, 60_B);
  const auto memory = [&](std::size_t rank, Bytes capacity) {
    return memory_of(job.job.traces[rank], job.result.times.ranks[rank], capacity);
  };
  CHECK(memory(0, 150_B).peak == 160_B);
  CHECK(memory(0, 150_B).peak_at == 34_us);
  CHECK(memory(0, 150_B).exceeds_at == 34_us);
  CHECK(memory(0, 160_B).exceeds_at == std::nullopt);
  CHECK(memory(1, 150_B).exceeds_at == 0_us);
  CHECK(memory(1, 160_B).exceeds_at == 34_us);
}

TEST_CASE("the rank that runs out of memory first is the one that exceeds its memory earliest") {
  CHECK(to_json(shown(30_B, 60_B))["first_out"] == 1);
  CHECK(to_json(shown(60_B, 30_B))["first_out"] == 0);
  CHECK(to_json(shown(30_B, 30_B))["first_out"] == 0);  // both at the same time: the lowest rank
  CHECK(to_json(shown(20_B, 25_B))["first_out"].is_null());
}

}  // namespace tidepool::job_lanes_test
