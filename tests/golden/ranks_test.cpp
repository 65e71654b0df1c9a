// Eight ranks of a DLRM training step (TorchRec, V100), against counts made without this program.
#include "simulator/studies/ranks/job_run.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/job/job_import.hpp"

namespace tidepool::ranks_test {

TEST_CASE("the eight ranks of a DLRM step end their collectives at the recorded times") {
  const auto path = tests::shared_data("multigpu/dlrm8/dlrm_kineto.tar.gz");
  if (!path) return;
  const LoadedJob loaded = join_ranks(*path, read_rank_profiles(*path));
  const Job& job = loaded.job;
  REQUIRE(job.ranks.size() == 8);
  REQUIRE(job.collectives.size() == 8);
  struct Expected {
    std::string name;
    Bytes input;  // from collectives.csv
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
  CHECK(*result.off * 100 < result.recorded);  // the goal: all 64 ends within 1 % of the step
  CHECK(*result.off == 8_us);
  // Rank 7 begins last, and others wait longest for it. If its time is halved, they wait longest for another rank.
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

TEST_CASE("the ranks of a DLRM step have the buffers of their execution traces, at the same times") {
  const auto path = tests::shared_data("multigpu/dlrm8/dlrm_kineto.tar.gz");
  const auto with = tests::shared_data("multigpu/dlrm8/dlrm_pytorch_et.tar.gz");
  if (!path || !with) return;
  std::vector<RankProfile> profiles = read_rank_profiles(*path);
  const LoadedJob times = join_ranks(*path, profiles);
  add_operands(*path, profiles, *with);
  const LoadedJob job = join_ranks(*path, std::move(profiles));
  CHECK(job.job == times.job);
  // cuda_storage_bytes of ranks.csv: all storages of the trace, some of which live one after the other.
  const std::vector<Bytes> storages{5134421742_B, 5131976659_B, 5131513839_B, 5131552733_B,
                                    5131080729_B, 402891118_B,  85735733_B,   61444018_B};
  for (std::size_t rank = 0; rank < 8; ++rank) {
    INFO("rank " << rank);
    CHECK(job.traces[rank].ideal_peak() <= storages[rank]);
    CHECK(job.traces[rank].ideal_peak().count() * 100 >= storages[rank].count() * 99);
  }
}

}  // namespace tidepool::ranks_test
