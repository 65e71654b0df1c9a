// Eight ranks of a DLRM training step (TorchRec, V100), against counts made without this program.
#include "simulator/ranks/job_run.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/job/job_import.hpp"

using namespace tidepool;

TEST_CASE("the eight ranks of a DLRM step end their collectives when they did") {
  const auto path = tests::shared_data("multigpu/dlrm8/dlrm_kineto.tar.gz");
  if (!path) return;
  const LoadedJob loaded = join_ranks(*path, read_rank_profiles(*path));
  const Job& job = loaded.job;
  REQUIRE(job.ranks.size() == 8);
  REQUIRE(job.collectives.size() == 8);
  struct Expected {
    std::string name;
    Bytes input;  // of collectives.csv
  };
  const std::vector<Expected> expected{{"all_to_all", 24576_B}, {"all_to_all", 192_B},     {"all_to_all", 1536_B},
                                       {"all_to_all", 13568_B}, {"all_reduce", 1576964_B}, {"all_to_all", 24576_B},
                                       {"all_reduce", 448_B},   {"all_reduce", 907840_B}};
  // The time from the last rank's start to the common end is 8 to 11 us for an exchange, 87, 23 and 69 us for the three
  // all-reduces; the least duration is up to 3 us less.
  const std::vector<Nanos> transfers{11_us, 11_us, 11_us, 11_us, 87_us, 11_us, 23_us, 69_us};
  for (std::size_t i = 0; i < 8; ++i) {
    INFO("collective " << i);
    CHECK(job.collectives[i].name == expected[i].name);
    CHECK(job.collectives[i].input >= expected[i].input);  // `expected` is rank 0's input; other ranks may have more
    CHECK(job.collectives[i].cost <= transfers[i]);
    CHECK(job.collectives[i].cost >= transfers[i] - 4_us);
  }
  CHECK(job.clock_residual == 7_us);
  const JobResult result = run_job(loaded, *path, {}, 2);
  REQUIRE(result.off);
  CHECK(*result.off * 100 < result.recorded);  // wanted: all 64 ends within 1 % of the step
  CHECK(*result.off == 8_us);
  // Rank 7 begins last, and others wait for it most. If its time is halved, they wait most for another rank.
  const auto most = [](const JobResult& of) {
    std::size_t rank = 0;
    for (std::size_t i = 1; i < 8; ++i)
      if (of.waits.caused(i) > of.waits.caused(rank)) rank = i;
    return rank;
  };
  CHECK(most(result) == 7);
  const JobResult faster = run_job(loaded, *path, {.ranks = {7}, .factor = 0.5}, 2);
  CHECK(most(faster) != 7);
  CHECK(faster.times.makespan < result.times.makespan);
}
