// A job from the captures of its ranks' processes.
#include "tracer/ranks/recorded_job.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/raw_log.hpp"
#include "tracer/lower/rank_files.hpp"

namespace tidepool::recorded_job_test {

using namespace tidepool::literals;
using tests::raw_log;

namespace {

/// A capture of a rank whose only kernel is launched at `time` and starts 10 ns later; without the launch unless
/// `launched`.
raw::Log log_of(int rank, int time, const std::string& infos, bool launched = true) {
  return raw_log(fmt::format("{0}{{'kind': 'info', 'key': 'rank', 'value': '{1}'}}\n"
                             "{{'kind': 'kernel', 'name': 'k', 'start': {3}, 'end': {4}, 'context': 1, 'stream': 7, "
                             "'correlation': {5}}}\n"
                             "{{'kind': 'launch', 'start': {2}, 'end': {2}, 'correlation': 1, 'thread': 5, "
                             "'evidence': 'parameter', 'uses': []}}\n",
                             infos, rank, time, time + 10, time + 15, launched ? 1 : 2),
                 fmt::format("'process': {}, 'source': 'cupti', 'clock': 'monotonic_raw'", rank + 1));
}

RecordedJob join_logs(std::vector<raw::Log> logs) {
  return join_recorded("run.raw", by_rank("run.raw", std::move(logs)), LoweredOps::kKernels,
                       [](LoweredRank rank) { return rank; });
}

/// The begin times of two ranks whose kernels are launched at 100 and 600 ns.
std::vector<Nanos> begins(const std::string& infos) {
  std::vector<raw::Log> logs;
  logs.push_back(log_of(0, 100, infos));
  logs.push_back(log_of(1, 600, infos));
  std::vector<Nanos> found;
  for (const JobRank& rank : join_logs(std::move(logs)).job.job.ranks) found.push_back(rank.start);
  return found;
}

/// A rank's number in a communicator of two ranks, and its part of an all-reduce.
std::string member(int own) {
  return fmt::format(
      "{{'kind': 'communicator', 'id': 9, 'rank': {}, 'ranks': 2}}\n"
      "{{'kind': 'collective', 'communicator': 9, 'sequence': 0, 'size': 64, 'name': 'all-reduce', "
      "'correlation': 1}}\n",
      own);
}

}  // namespace

TEST_CASE(
    "the ranks of a job begin at their recorded times, even if estimated, and those of a dry run begin together") {
  const std::string estimated = "{'kind': 'info', 'key': 'time', 'value': 'estimated'}\n";
  CHECK(begins("") == std::vector{0_ns, 500_ns});
  CHECK(begins(estimated) == std::vector{0_ns, 500_ns});
  CHECK(begins(estimated + "{'kind': 'info', 'key': 'mode', 'value': 'dry run: no device'}\n") ==
        std::vector{0_ns, 0_ns});
}

TEST_CASE("a rank whose first op has no recorded launch begins at the start of that op") {
  std::vector<raw::Log> logs;
  logs.push_back(log_of(0, 100, "", false));
  logs.push_back(log_of(1, 600, ""));
  CHECK(join_logs(std::move(logs)).job.job.ranks.at(1).start == 490_ns);
  const std::string mark = "{{'kind': 'range', 'time': {}, 'action': 'mark', 'meaning': 'iteration', 'name': '{}'}}\n";
  const std::string kernel =
      "{'kind': 'kernel', 'name': 'k', 'start': 210, 'end': 215, 'context': 1, 'stream': 7, 'correlation': 3}\n";
  const raw::Log two =
      log_of(0, 100, fmt::format(fmt::runtime(mark), 100, 0) + kernel + fmt::format(fmt::runtime(mark), 200, 1), false);
  const LoweredRank rank = lower_rank({&two, 1}, LoweredOps::kKernels);
  CHECK(rank.begin == 110_ns);
  CHECK(iterations(rank, 1, 1).begin == 210_ns);
}

TEST_CASE("collectives of a communicator that no file names are counted as unmatched") {
  const std::string collective =
      "{'kind': 'collective', 'communicator': 9, 'sequence': 0, 'size': 64, 'name': 'all-reduce', 'correlation': 1}\n";
  std::vector<raw::Log> logs;
  logs.push_back(log_of(0, 100, collective));
  logs.push_back(log_of(1, 100, collective));
  const RecordedJob joined = join_logs(std::move(logs));
  CHECK(joined.job.job.collectives.empty());
  CHECK(joined.unmatched == 1);
}

TEST_CASE("a rank that left no recording is counted, and so are its collectives with the only other rank") {
  std::vector<raw::Log> logs;
  logs.push_back(log_of(0, 100, member(0)));
  const RecordedJob alone = join_logs(std::move(logs));
  CHECK(alone.job.traces.size() == 1);
  CHECK(alone.missing == 1);
  CHECK(alone.unmatched == 1);
  CHECK(notes_of(alone) ==
        std::vector<std::string>{"1 more collective is not in the traces of all its ranks; it is a kernel",
                                 "1 more rank left no recording, and is not in the job"});
  std::vector<raw::Log> both;
  both.push_back(log_of(0, 100, member(0)));
  both.push_back(log_of(1, 100, member(1)));
  CHECK(notes_of(join_logs(std::move(both))).empty());
  std::vector<raw::Log> second;
  second.push_back(log_of(1, 100, member(1)));
  CHECK_THROWS_WITH(join_logs(std::move(second)), "run.raw: recordings of rank 1; expected one of each rank, 0 to 1");
}

TEST_CASE("the name of a group of some ranks has their numbers") {
  std::vector<raw::Log> logs;
  logs.push_back(log_of(0, 100, member(0)));
  logs.push_back(log_of(1, 100, ""));
  logs.push_back(log_of(2, 100, member(1)));
  const Job job = join_logs(std::move(logs)).job.job;
  REQUIRE(job.groups.size() == 1);
  CHECK(job.groups[0].name == "0,2");  // "0-2" would mean all three ranks
  CHECK(job.groups[0].ranks == std::vector<std::size_t>{0, 2});
}

}  // namespace tidepool::recorded_job_test
