// When the recorder detaches CUPTI from the job.
#include <algorithm>

#include "tests/catch.hpp"
#include "tests/fake_cuda/job.hpp"

namespace tidepool::detach_test {

#ifdef TIDEPOOL_WITH_RECORDER

using tests::kKernels;
using tests::run_job;

namespace {

/// Runs a job whose recorder waits only 100 ms for running work when the recording ends, a fifth of its limit for the
/// end of the job. If a busy machine exceeds this limit, the job is run again with a longer one.
/// @param run  runs the job in a folder, with the limit as a variable
template <class Run>
tests::RecordedJob run_with_early_stop(Run run) {
  const ScratchFolder folder, other;
  tests::RecordedJob job = run(folder, "TIDEPOOL_FLUSH_LIMIT_MS=500");
  if (job.err.find("did not hand out its last records in 500 ms") != std::string::npos)
    job = run(other, tests::kPatience);
  return job;
}

}  // namespace

TEST_CASE("the recorder keeps the requested iterations, and detaches after them") {
  const ScratchFolder folder;
  const std::string step = "push iteration\nlaunch add a b 1\nlaunch add b a 1\npop\n";
  const tests::Gate detached = tests::gate_until_said(folder, "finalized");
  const auto job = run_job(folder,
                           kKernels + "alloc a 4096\nalloc b 4096\nrepeat 5\n" + step + "again\n" + detached.line() +
                               "launch add a b 1\nlaunch add a b 1\n",
                           "TIDEPOOL_SKIP=1 TIDEPOOL_ITERATIONS=2 FAKE_VERBOSE=1", {detached});
  CHECK(job.code == 0);
  CHECK(job.err == "fake: finalized\n");
  const raw::Log& log = job.log();
  CHECK(log.kernels.size() == 4);
  CHECK(log.launches.size() == 4);
  CHECK(log.memory.size() == 2);  // allocations are recorded from the start of the job
  const auto iterations = std::count_if(log.ranges.begin(), log.ranges.end(), [](const raw::Range& range) {
    return range.meaning == raw::Meaning::kIteration;
  });
  CHECK(iterations == 3);  // two begins, and the end of the second iteration
  CHECK(log.header.closed == 1);
}

TEST_CASE("the recorder does not detach in a nested call, nor while another thread is in a call") {
  const std::string window =
      kKernels + "alloc a 4096\nalloc b 4096\npush iteration\nlaunch add a b 1\npop\npush iteration\n";
  std::string slow = "threads 2\n", nested = "repeat 100\ndelay 5\nnested-launch add a b 1\nagain\n";
  for (int i = 0; i < 20; ++i) slow += "delay 40\nlaunch add a b 1\n";
  slow += "join\n";
  for (const std::string& calls : {slow, nested}) {
    const auto job = run_with_early_stop([&](const ScratchFolder& folder, const std::string& limit) {
      const tests::Gate detached = tests::gate_until_said(folder, "finalized");
      return run_job(folder, window + calls + detached.line() + "launch add a b 1\n",
                     limit + " TIDEPOOL_ITERATIONS=1 FAKE_VERBOSE=1", {detached});
    });
    CHECK(job.code == 0);
    CHECK(job.err == "fake: finalized\n");
  }
}

TEST_CASE("a thread that enters a call while another detaches CUPTI does not use it any more") {
  std::string launches;
  for (int i = 0; i < 300; ++i) launches += "delay 5\nlaunch add a b 1\n";
  const auto job = run_with_early_stop([&](const ScratchFolder& folder, const std::string& limit) {
    return run_job(folder,
                   kKernels + "alloc a 4096\nalloc b 4096\npush iteration\nlaunch add a b 1\npop\n" +
                       "push iteration\nthreads 2\n" + launches + "join\n",
                   limit + " TIDEPOOL_ITERATIONS=1 FAKE_VERBOSE=1 FAKE_FAULTS=late-callback");
  });
  CHECK(job.code == 0);
  CHECK(job.err == "fake: finalized\n");
}

TEST_CASE("if CUPTI must not detach, it stays in the job and records nothing more") {
  const auto job = run_with_early_stop([](const ScratchFolder& folder, const std::string& limit) {
    return run_job(folder,
                   kKernels + "alloc a 4096\nalloc b 4096\npush iteration\nlaunch add a b 1\npop\npush iteration\n" +
                       "repeat 100\ndelay 5\nlaunch add a b 1\nagain\n",
                   limit + " TIDEPOOL_ITERATIONS=1 TIDEPOOL_DETACH=0 FAKE_VERBOSE=1");
  });
  CHECK(job.code == 0);
  CHECK(job.err.empty());
  CHECK(job.log().kernels.size() == 1);
  CHECK(job.log().header.closed == 1);
}

#endif

}  // namespace tidepool::detach_test
