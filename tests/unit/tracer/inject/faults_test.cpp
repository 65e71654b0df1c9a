// Failures of real jobs, simulated for the recorder: the job continues, and its recording can be read.
#include <set>

#include "tests/catch.hpp"
#include "tests/fake_cuda/job.hpp"
#include "tests/importing.hpp"
#include "tests/paths.hpp"
#include "tracer/lower/lower.hpp"
#include "traces/summary.hpp"

namespace tidepool::faults_test {

using namespace tidepool::literals;

#ifdef TIDEPOOL_WITH_RECORDER

using tests::kKernels;
using tests::run_job;

namespace {

const std::string kStep = "alloc a 4096\nalloc b 4096\nlaunch add a b 1\n";

}  // namespace

TEST_CASE("another tool that uses CUPTI is reported by name, and the job runs") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + kStep + "exit 5\n", "FAKE_FAULTS=subscriber=Kineto");
  CHECK(job.code == 5);
  CHECK(
      job.err ==
      "tidepool: 'Kineto' already uses CUPTI in this process, and CUPTI serves one tool at a time; the job runs "
      "unrecorded. Switch the other tool off, or keep it and give `tidepool import` what it records; `tidepool record "
      "--torch` records PyTorch's operators and tensors without CUPTI\n");
  const ScratchFolder hooked;
  CHECK(run_job(hooked, kKernels + kStep, "FAKE_FAULTS=subscriber=Kineto TIDEPOOL_RECORD_TORCH=1").err ==
        "tidepool: 'Kineto' already uses CUPTI in this process, and CUPTI serves one tool at a time; only PyTorch's "
        "operators and tensors are recorded. Switch the other tool off, or keep it and give `tidepool import` what it "
        "records\n");
  const ScratchFolder unnamed;
  CHECK(run_job(unnamed, kStep.substr(0, 13), "FAKE_FAULTS=subscriber")
            .err.starts_with("tidepool: another profiler (Kineto, Nsight Systems or Compute Sanitizer) already uses "
                             "CUPTI in this process"));
}

TEST_CASE("a missing CUPTI is reported with advice, and the job runs") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + kStep, "TIDEPOOL_CUPTI=/nonexistent/libcupti.so");
  CHECK(job.code == 0);
  CHECK(job.err ==
        "tidepool: no CUPTI: /nonexistent/libcupti.so: cannot open shared object file: No such file or directory; the "
        "job "
        "runs unrecorded. Expected libcupti.so of CUDA 12.4 or later in LD_LIBRARY_PATH, or its path in "
        "TIDEPOOL_CUPTI\n");
}

TEST_CASE("the CUPTI of a toolkit is found if no program has loaded one") {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.file("cuda/extras/CUPTI/lib64"));
  std::filesystem::create_symlink(paths::fake_cupti(), folder.file("cuda/extras/CUPTI/lib64/libcupti.so"));
  const auto job = run_job(folder, kKernels + kStep, "TIDEPOOL_CUPTI= CUDA_HOME=" + folder.file("cuda"));
  CHECK(job.err.empty());
  REQUIRE(job.logs.size() == 1);
  CHECK(job.log().kernels.size() == 1);
}

TEST_CASE("if a driver lets only administrators profile, a message explains that") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + kStep, "FAKE_FAULTS=privileges");
  CHECK(job.code == 0);
  CHECK(job.err ==
        "tidepool: CUPTI does not record kernels: CUPTI_ERROR_FAKE (35); the job runs unrecorded. Expected "
        "permission: "
        "root, or the driver's option NVreg_RestrictProfilingToAdminUsers=0\n");
}

TEST_CASE("a variable with an invalid value is reported, and its default is used") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + kStep, "TIDEPOOL_SKIP=ten");
  CHECK(job.err == "tidepool: TIDEPOOL_SKIP is 'ten'; expected a whole number\n");
  CHECK(job.log().kernels.size() == 1);
}

TEST_CASE("records that CUPTI drops are counted") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + "alloc a 4096\nalloc b 4096\nrepeat 10\nlaunch add a b 1\nagain\n",
                           "FAKE_FAULTS=drop=4");
  std::uint64_t dropped = 0;
  for (const raw::Loss& loss : job.log().losses)
    if (loss.loss == raw::LossKind::kDroppedRecords) dropped += loss.count;
  CHECK(dropped == 3);  // of 13 records: a device, 2 allocations and 10 kernels
  CHECK(job.log().kernels.size() + job.log().memory.size() + job.log().devices.size() == 10);
}

TEST_CASE("kernels whose times were lost are recorded without times") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + "alloc a 4096\nalloc b 4096\nrepeat 4\nlaunch add a b 1\nagain\n",
                           "FAKE_FAULTS=zero=2");
  REQUIRE(job.log().kernels.size() == 4);
  CHECK(std::count_if(job.log().kernels.begin(), job.log().kernels.end(),
                      [](const raw::Kernel& kernel) { return kernel.start == 0 && kernel.end == 0; }) == 2);
}

TEST_CASE("if a driver does not give kernel parameters, launches are recorded as not scanned") {
  const ScratchFolder folder;
  const auto job = run_job(folder, kKernels + kStep, "FAKE_FAULTS=no-layout");
  REQUIRE(job.log().launches.size() == 1);
  CHECK(job.log().launches[0].record.flags == raw::kNotScanned);
  CHECK(job.log().kernels.size() == 1);
}

TEST_CASE("a flush that hangs does not delay the end of the job") {
  const ScratchFolder folder;
  // The flush never ends, so the job ends only if it does not wait for the flush. The launch is on the disk before the
  // job ends.
  const tests::Gate written = tests::gate_until_written(folder, 0, 1);
  const auto job = run_job(folder, kKernels + kStep + written.line(),
                           "FAKE_FAULTS=hang-flush TIDEPOOL_FLUSH_LIMIT_MS=100", {written});
  CHECK(job.code == 0);
  CHECK(job.err == "tidepool: CUPTI did not hand out its last records in 100 ms; the raw file lacks them\n");
  CHECK(job.log().launches.size() == 1);  // the records of callbacks are there
  CHECK(job.log().kernels.empty());
}

TEST_CASE("the file of a job that is killed, aborts or calls _exit is readable up to that moment") {
  for (const auto& [ending, code] : {std::pair{"raise 9", -1}, std::pair{"raise 6", -1}, std::pair{"_exit 7", 7}}) {
    const ScratchFolder folder;
    const tests::Gate written = tests::gate_until_written(folder, 1, 1);
    const auto job = run_job(folder, kKernels + kStep + written.line() + ending + "\n", "", {written});
    INFO(ending);
    CHECK((job.code == code || code == -1));
    REQUIRE(job.logs.size() == 1);
    CHECK(job.log().header.closed == 0);
    CHECK(job.log().kernels.size() == 1);
    CHECK(job.log().launches.size() == 1);
  }
}

TEST_CASE(
    "forked children are not recorded and do not disturb the recording, and those that exec have their own file") {
  const ScratchFolder folder;
  std::ofstream{folder.file("other")} << kKernels + kStep + "launch add a b 1\n";
  const auto job = run_job(
      folder, kKernels + kStep + "fork\nlaunch add a b 1\nfork " + folder.file("other") + "\nlaunch add b a 1\n");
  CHECK(job.code == 0);
  CHECK(job.err.find("tidepool:") == std::string::npos);
  REQUIRE(job.logs.size() == 2);
  std::vector<std::size_t> kernels{job.logs[0].kernels.size(), job.logs[1].kernels.size()};
  std::sort(kernels.begin(), kernels.end());
  CHECK(kernels == std::vector<std::size_t>{2, 3});
}

TEST_CASE("a process that replaces itself begins a second file, and the memory of its first program ends") {
  const ScratchFolder folder;
  std::ofstream{folder.file("other")} << kKernels + "alloc a 1024\nalloc b 1024\nlaunch add a b 1\nfree a\n";
  const tests::Gate written = tests::gate_until_written(folder, 1, 1);
  const auto job =
      run_job(folder, kKernels + kStep + written.line() + "exec " + folder.file("other") + "\n", "", {written});
  CHECK(job.code == 0);
  REQUIRE(job.logs.size() == 2);
  CHECK(job.logs[0].header.process == job.logs[1].header.process);
  const Trace trace = lower(job.logs);
  // Both programs get the same addresses, streams and correlation ids.
  CHECK(tests::program(trace) == std::vector<std::string>{"alloc 0", "alloc 1", "run add", "free 0", "free 1",
                                                          "alloc 2", "alloc 3", "run add", "free 2"});
  CHECK(summarize(trace).ideal_peak == 8192_B);
}

TEST_CASE("a full disk is reported once and the job continues") {
  const ScratchFolder folder;
  const std::string many = kKernels + "alloc a 4096\nalloc b 4096\nrepeat 3000\nlaunch add a b 1\nagain\nexit 4\n";
  std::ofstream{folder.file("script")} << many;
  const std::string line = "bash -c 'ulimit -f 64; trap \"\" XFSZ; TIDEPOOL_RAW=" + folder.file("raw") + " " +
                           tests::kPatience + " CUDA_INJECTION64_PATH=" + paths::recorder_library() +
                           " TIDEPOOL_CUPTI=" + paths::fake_cupti() + " " + paths::fake_job() + " " +
                           folder.file("script") + "' 2>" + folder.file("err");
  const int status = std::system(line.c_str());
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 4));
  CHECK(content_of(folder.file("err")) ==
        "tidepool: the disk refuses what is recorded (File too large); the job goes on, and the raw file has what was "
        "written before\n");
  for (const auto& entry : std::filesystem::directory_iterator{folder.file("raw")})
    CHECK(raw::read_raw(read_input(entry.path().string())).header.lost_records > 0);
}

TEST_CASE("recording begins at a signal, stops at the next one, and begins again at the third") {
  const ScratchFolder folder;
  const std::string signal = "raise 10\n";  // SIGUSR1
  const tests::Gate started = tests::gate_until_said(folder, "started"),
                    stopped = tests::gate_until_said(folder, "stopped"),
                    again = tests::gate_until_said(folder, "started", 2);
  const auto job =
      run_job(folder,
              kKernels + kStep + signal + started.line() + "launch add a b 1\nruntime-launch add a b 1\n" + signal +
                  stopped.line() + kStep + "launch add a b 1\n" + signal + again.line() + "launch add a b 1\n",
              "TIDEPOOL_SIGNAL=10 TIDEPOOL_WAIT=1", {started, stopped, again});
  CHECK(job.code == 0);
  CHECK(job.err ==
        "tidepool: recording started\ntidepool: recording stopped; the signal starts it again\n"
        "tidepool: recording started\n");
  const raw::Log& log = job.log();
  REQUIRE(log.kernels.size() == 3);
  std::set<std::uint32_t> correlations;
  for (const raw::WithUses<raw::Launch>& launch : log.launches) correlations.insert(launch.record.correlation);
  CHECK(correlations.size() == log.launches.size());
  for (const raw::Kernel& kernel : log.kernels) CHECK(correlations.contains(kernel.correlation));
  std::size_t existing = 0;  // allocations from before a recording began
  for (const raw::Memory& memory : log.memory) existing += memory.operation == raw::MemoryOperation::kExisting ? 1 : 0;
  CHECK(existing == 4);  // a and b, and the two that were allocated between the recordings
}

TEST_CASE("a function is described again if its handle got another function between two recordings") {
  const ScratchFolder folder;
  const std::string signal = "raise 10\n";
  const tests::Gate started = tests::gate_until_said(folder, "started"),
                    stopped = tests::gate_until_said(folder, "stopped"),
                    again = tests::gate_until_said(folder, "started", 2);
  const auto job = run_job(folder,
                           kKernels + "alloc a 4096\nalloc b 4096\n" + signal + started.line() + "launch add a b 1\n" +
                               signal + stopped.line() + "unload add\nfunction late _Z4latePKfPf 4@0 8@8 8@16\n" +
                               signal + again.line() + "launch late 3 b a\n",
                           "TIDEPOOL_SIGNAL=10 TIDEPOOL_WAIT=1", {started, stopped, again});
  CHECK(job.code == 0);
  const raw::Log& log = job.log();
  REQUIRE(log.kernels.size() == 2);
  CHECK(log.text(log.kernels[1].name) == "_Z4latePKfPf");
  const auto uses = tests::uses_of(log, log.kernels[1].correlation);
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].parameter == 1);
  CHECK(uses[1].parameter == 2);
}

#endif

}  // namespace tidepool::faults_test
