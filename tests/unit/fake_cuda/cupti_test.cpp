// The fakes of CUPTI and its driver refuse the same calls as NVIDIA's, and deliver records as late as NVIDIA's.
#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/fake_cuda/job.hpp"
#include "tracer/lower/lower.hpp"

namespace tidepool::cupti_test {

#ifdef TIDEPOOL_WITH_RECORDER

using tests::kKernels;
using tests::run_job;
using tests::uses_of;

namespace {

// Numbers of cuda.h and cupti_result.h.
constexpr int kInvalidValue = 1, kInvalidContext = 201, kInvalidHandle = 400, kIllegalState = 401;
constexpr int kCaptureUnsupported = 900;
constexpr int kInvalidParameter = 1, kWrongSize = 10;

/// A script's line that the driver must refuse with this status.
std::string refused(int number, const std::string& line) { return fmt::format("refused {} {}\n", number, line); }

void play(const std::string& script) {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + script);
  INFO(job.err);
  CHECK(job.code == 0);
}

const std::string kMemory = "alloc a 4096\nalloc b 4096\n";

}  // namespace

TEST_CASE("a script on the fake of CUPTI's driver fails if a call has another status than expected") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kMemory + refused(kInvalidValue, "copy a b 64"));
  CHECK(job.code == 99);
  CHECK_THAT(job.err, ContainsSubstring("job: refused 1 copy a b 64: error 0\n"));
}

TEST_CASE("the fake of CUPTI's driver accepts handles only until they are released") {
  play(kMemory + "stream s\nevent e\nrecord e s\nwait e s\ndestroy-event e\n" + refused(kInvalidHandle, "record e s") +
       refused(kInvalidHandle, "wait e s") + refused(kInvalidHandle, "destroy-event e") +
       "launch add a b 1 on s\ndestroy-stream s\n" + refused(kInvalidHandle, "launch add a b 1 on s") +
       refused(kInvalidHandle, "alloc-async c 64 s") + refused(kInvalidHandle, "destroy-stream s") + "unload add\n" +
       refused(kInvalidHandle, "launch add a b 1") + "free a\n" + refused(kInvalidValue, "free a"));
  play(kMemory + "add-node n g add b a 1\ninstantiate x g\ngraph x\ndestroy-exec x\n" +
       refused(kInvalidHandle, "graph x") + refused(kInvalidHandle, "set-node x n add b a 1"));
}

TEST_CASE("the fake of CUPTI's driver serves only threads that have made its context current") {
  play(kMemory + "no-context\n" + refused(kInvalidContext, "alloc c 64") +
       refused(kInvalidContext, "launch add a b 1") + refused(kInvalidContext, "stream s") +
       "context\nlaunch add a b 1\nstream s\n");
}

TEST_CASE("the fake of CUPTI's driver copies and fills only within allocations") {
  play(kMemory + "copy a+2048 b 2048\n" + refused(kInvalidValue, "copy a+2048 b 2049") +
       refused(kInvalidValue, "copy b a+4095 2") + "copy-in a 4096\n" + refused(kInvalidValue, "copy-in b+1 4096") +
       refused(kInvalidValue, "copy-out b+4096 1") + "set b 1024\n" + refused(kInvalidValue, "set b 1025") +
       "free b\n" + refused(kInvalidValue, "set b 1"));
}

TEST_CASE("the fake of CUPTI's driver keeps the rules of captures") {
  play(kMemory + "stream s\nstream t\n" + refused(kIllegalState, "end-capture g") + "capture s\n" +
       refused(kIllegalState, "capture t") + refused(kCaptureUnsupported, "alloc c 64") +
       refused(kCaptureUnsupported, "synchronize") + refused(kCaptureUnsupported, "destroy-stream s") +
       "launch add a b 1 on s\nend-capture g\nsynchronize\nalloc c 64\n");
}

TEST_CASE("the fake of CUPTI accepts only attributes of the right size") {
  play("attribute 5 1\nattribute 0 8\n" + refused(kWrongSize, "attribute 5 8") + refused(kWrongSize, "attribute 8 4") +
       refused(kWrongSize, "attribute 0 4") + refused(kInvalidParameter, "attribute 77 8"));
}

TEST_CASE("kernels that end after the recorded iterations have their times, and those that end too late have none") {
  const std::string iteration = kMemory + "push iteration\nlaunch add a b 1\nlaunch add b a 1\npop\npush iteration\n";
  for (const auto& [slow_ms, ended] : {std::pair{300, true}, std::pair{20'000, false}}) {
    INFO(slow_ms);
    const ScratchFolder folder;
    const tests::Gate detached = tests::gate_until_said(folder, "finalized");
    const auto job =
        run_job(folder, kKernels + iteration + detached.line(),
                fmt::format("FAKE_FAULTS=slow={} FAKE_VERBOSE=1 TIDEPOOL_ITERATIONS=1", slow_ms), {detached});
    CHECK(job.code == 0);
    REQUIRE(job.log().kernels.size() == 2);
    for (const raw::Kernel& kernel : job.log().kernels) {
      CHECK(kernel.end - kernel.start == (ended ? std::int64_t{1'000'000} * slow_ms : 0));
      CHECK((kernel.start != 0) == ended);
    }
    if (ended) CHECK(job.log().kernels[1].start == job.log().kernels[0].end);  // both are on one stream
  }
}

TEST_CASE("work that a job waited for before it ended has its times") {
  const ScratchFolder folder;
  const auto job = run_job(
      folder,
      kKernels + kMemory + "stream s\nrepeat 5\nlaunch add a b 1 on s\nagain\n" + "launch add b a 1\nsynchronize\n",
      "FAKE_FAULTS=slow=40");
  REQUIRE(job.log().kernels.size() == 6);
  for (const raw::Kernel& kernel : job.log().kernels) CHECK(kernel.end - kernel.start == 40'000'000);
}

TEST_CASE("a function that has the handle of an unloaded one is described again") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + kMemory +
                                       "launch add a b 1\nunload add\nfunction late _Z4latePKfPf 4@0 8@8 8@16\n"
                                       "launch late 3 b a\n");
  const raw::Log& log = job.log();
  REQUIRE(log.kernels.size() == 2);
  const auto uses = uses_of(log, log.kernels[1].correlation);
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].address == log.memory.at(1).address);
  CHECK(uses[0].parameter == 1);
  CHECK(uses[1].parameter == 2);
}

TEST_CASE("the records of every version of CUPTI are read") {
  for (const int version : {22, 24, 26, 28, 130001, 130202, 130500}) {
    INFO(version);
    const ScratchFolder folder;
    const auto job = run_job(folder,
                             kKernels + kMemory +
                                 "stream s\nevent e\nrepeat 3\nlaunch add a b 1\ncopy a b 64\nset b 16\nrecord e s\n"
                                 "wait e s\nagain\n",
                             fmt::format("FAKE_CUPTI_VERSION={}", version));
    const raw::Log& log = job.log();
    REQUIRE(log.kernels.size() == 3);
    CHECK(log.memory.size() == 2);
    CHECK((log.copies.size() == 3 && log.memsets.size() == 3));
    CHECK((log.event_records.size() == 3 && log.syncs.size() == 3));
    CHECK(log.devices.size() == 1);
    for (const raw::Kernel& kernel : log.kernels) {
      CHECK(log.text(kernel.name) == "_Z3addPKfPfi");
      CHECK(uses_of(log, kernel.correlation).size() == 2);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK((log.copies[i].size == 64 && log.memsets[i].size == 64));
      CHECK(log.event_records[i].sync_id == (version < 26 ? 0 : i + 1));
      CHECK(log.syncs[i].sync_id == log.event_records[i].sync_id);
    }
    CHECK(log.text(log.memory[0].source) == (version < 24 ? "" : "libjob.so"));
  }
}

#endif

}  // namespace tidepool::cupti_test
