// tidepool record, on the fake driver.
#include <dlfcn.h>
#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/fake_cuda/job.hpp"
#include "tests/paths.hpp"
#include "traces/import/importer.hpp"
#include "traces/summary.hpp"

namespace tidepool::record_test {

using tests::recorder_is_built;

TEST_CASE("tidepool record refuses unsupported options before it runs the job") {
  const ScratchFolder folder;
  const auto message = [](const std::vector<std::string>& arguments) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  std::ofstream{folder.file("run.raw")} << "";
  CHECK(message({"record", "-o", folder.file("run.tide"), "--", "true"}) ==
        "tidepool: " + folder.file("run.raw") +
            ": exists already; expected no file or folder of this name: the raw recording goes there\n");
  CHECK(message({"record", "-o", folder.file("a.tide"), "--wait", "--", "true"}) ==
        "tidepool: --wait: nothing would start the recording; expected --signal too\n");
  CHECK(message({"record", "-o", folder.file("a.raw"), "--", "true"}) ==
        "tidepool: -o " + folder.file("a.raw") +
            ": this is the name of the folder for the raw recording; expected another ending, as in run.tide\n");
  CHECK(message({"record", "-o", folder.file("none/a.tide"), "--", "true"}) ==
        "tidepool: -o " + folder.file("none/a.tide") + ": there is no folder " + folder.file("none") +
            "; expected one that exists\n");
  for (const auto& [steps, torch] : {std::pair{"3", "--no-gpu"}, std::pair{"0", "--torch"}})
    CHECK(message({"record", "-o", folder.file("a.tide"), torch, "--steps", steps, "--", "true"}) ==
          "tidepool: --steps: PyTorch's hook counts steps; expected a number from 1 on, and --torch too\n");
  CHECK(message({"record", "-o", "", "--", "true"}) ==
        "tidepool: -o: the name of the trace is empty; expected one, as in run.tide\n");
  CHECK(message({"record", "-o", folder.file("a.tide"), "--no-gpu", "--", "true"}) ==
        "tidepool: --no-gpu: nothing would be recorded; expected --torch too\n");
  CHECK(message({"record", "-o", folder.file("a.tide"), "--torch", "--no-gpu", "--signal", "USR1", "--", "true"}) ==
        "tidepool: --signal: it stops and starts the recording of the GPU, and only PyTorch is recorded; expected it "
        "without --no-gpu\n");
  CHECK(message({"record", "-o", folder.file("a.tide"), "--torch", "--iteration-kernel", "k", "--", "true"}) ==
        "tidepool: --iteration-kernel: with PyTorch's hook, iterations are the steps of an optimizer; expected it "
        "without --torch\n");
  CHECK(message({"record", "-o", folder.file("a.tide"), "--library", "/nowhere.so", "--", "true"}) ==
        "tidepool: --library: /nowhere.so: no such file; expected libtidepool_inject.so\n");
  const std::string script = folder.file("train.py");
  std::ofstream{script} << "";
  CHECK(message({"record", "--torch", "--no-gpu", "-o", folder.file("a.tide"), "--", script}) ==
        "tidepool: " + script + ": cannot be run: Permission denied; expected a program, as in -- python3 " + script +
            "\n");
  if (!recorder_is_built()) return;
  CHECK(message({"record", "-o", folder.file("a.tide"), "--signal", "SIGFOO", "--", "true"}) ==
        "tidepool: --signal: 'SIGFOO' is no signal; expected USR1, USR2, HUP, WINCH or a number\n");
  CHECK(message({"record", "-o", folder.file("a.tide"), "--", "/nowhere/job"}) ==
        "tidepool: /nowhere/job: cannot be run: No such file or directory\n");
}

TEST_CASE("tidepool record passes the job's exit status on, and says when nothing was recorded") {
  if (!recorder_is_built()) return;
  const ScratchFolder folder;
  const ProgramResult failed = run_program({"record", "-o", folder.file("a.tide"), "--", "sh", "-c", "exit 7"});
  CHECK(failed.code == 7);
  CHECK(failed.err.starts_with("tidepool: the job ended with exit status 7\ntidepool: nothing recorded: "));
  const ProgramResult idle = run_program({"record", "-o", folder.file("a.tide"), "--", "true"});
  CHECK(idle.code == 1);
  CHECK(idle.err.starts_with("tidepool: nothing recorded: "));
  const ProgramResult killed = run_program({"record", "-o", folder.file("a.tide"), "--", "sh", "-c", "kill -9 $$"});
  CHECK(killed.code == 128 + 9);
  CHECK(killed.err.starts_with("tidepool: the job was killed by SIGKILL\n"));
}

TEST_CASE("tidepool record --torch needs the recorder for GPUs only where there is NVIDIA's driver") {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) return tests::skip("NVIDIA's driver is here");
  // The state after ./setup.sh on a machine without NVIDIA's headers: the program and its Python packages alone.
  const ScratchFolder folder;
  std::filesystem::copy_file(paths::program(), folder.file("tidepool"));
  std::filesystem::create_directory(folder.file("python"));
  const auto record = [&](const std::string& options) {
    const std::string line = fmt::format("{} record {} -o {} -- true 2>{}", folder.file("tidepool"), options,
                                         folder.file("a.tide"), folder.file("err"));
    const int status = std::system(line.c_str());
    return std::pair{WEXITSTATUS(status), content_of(folder.file("err"))};
  };
  CHECK(
      record("--torch") ==
      std::pair{1, std::string{"tidepool: nothing recorded: PyTorch's hook was not loaded: no Python of the job "
                               "imported torch, or it did not look into PYTHONPATH; expected python without -I, -E and "
                               "-S, and a job that keeps PYTHONPATH (as in PYTHONPATH=src:$PYTHONPATH)\n"}});
  CHECK(
      record("") ==
      std::pair{2, fmt::format("tidepool: record: no libtidepool_inject.so in {}; it is built where cuda.h and cupti.h "
                               "are found (./setup.sh cuda-headers fetches them)\n",
                               std::filesystem::canonical(folder.file(".")).string())});
}

namespace {

/// The header of a file of PyTorch's hook.
std::string header_of(int process) {
  return fmt::format(
      R"({{"tidepool_raw":1,"process":{},"source":"torch","clock":"monotonic_raw","time":1,"monotonic_raw":1}})"
      "\n",
      process);
}

/// Arguments that record a job. The job writes a file like that of PyTorch's hook into the folder of the recording: a
/// header and `records`. Then it runs the shell command `end`, if that is not empty.
std::vector<std::string> hooked_job(const ScratchFolder& folder, const std::vector<std::string>& options,
                                    const std::string& records, const std::string& end = "") {
  std::ofstream{folder.file("records")} << header_of(1) << records;
  std::vector<std::string> arguments{"record", "--torch", "--no-gpu", "-o", folder.file("a.tide")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", "sh", "-c",
                                     "mkdir -p $TIDEPOOL_RAW && cp " + folder.file("records") +
                                         " $TIDEPOOL_RAW/1.torch.jsonl" + (end.empty() ? "" : "; " + end)});
  return arguments;
}

const std::string kAlloc = R"({"kind":"framework_memory","time":2,"action":"existing","address":4096,"size":64})"
                           "\n";
/// The records of step `id`, with one op; without the end of the step unless `whole`.
std::string step(int id, bool whole) {
  const int time = 10 * id;
  return fmt::format(
      R"({{"kind":"range","time":{},"action":"begin","id":{},"meaning":"iteration","name":"{}"}})"
      "\n"
      R"({{"kind":"framework_op","start":{},"end":{},"name":"aten::relu_","uses":[["read_write",4096]]}})"
      "\n{}",
      time, id, id - 1, time + 1, time + 2,
      whole ? fmt::format(R"({{"kind":"range","time":{},"action":"end","id":{}}})"
                          "\n",
                          time + 3, id)
            : "");
}

}  // namespace

TEST_CASE("a step of PyTorch that did not end is not recorded, unless the job failed in it") {
  const ScratchFolder folder;
  const ProgramResult result = run_program(hooked_job(folder, {"--iterations", "1"}, kAlloc + step(1, false)));
  CHECK(result.code == 1);
  CHECK(result.err ==
        "tidepool: nothing recorded: the job ended before a recorded step was complete; expected more steps of its "
        "optimizer, or a smaller --skip\n");
  CHECK_FALSE(std::filesystem::exists(folder.file("a.tide")));
  CHECK_FALSE(std::filesystem::exists(folder.file("a.raw")));
  const ProgramResult failed = run_program(hooked_job(folder, {}, kAlloc + step(1, false), "exit 4"));
  CHECK(failed.code == 4);
  CHECK_THAT(failed.err, ContainsSubstring(", part of 1 iteration: the job failed in it\n"));
  CHECK(summarize(load_trace(folder.file("a.tide"))).ops == 1);
}

TEST_CASE("fewer complete steps of PyTorch than requested are recorded, with a message and exit code 1") {
  const ScratchFolder folder;
  const std::string two = kAlloc + step(1, true) + step(2, true);
  CHECK(run_program(hooked_job(folder, {"--iterations", "2"}, two)).code == 0);
  const ProgramResult result = run_program(hooked_job(folder, {"--iterations", "3"}, two));
  CHECK(result.code == 1);
  CHECK(result.err == folder.file("a.tide") +
                          ": 2 kernels, 0 copies, 1 buffer, 2 iterations\n"
                          "tidepool: 2 of 3 iterations are recorded: the job had no more\n");
}

TEST_CASE(
    "processes that train one after the other have a trace each, and those that train at the same time are one step") {
  const ScratchFolder folder;
  const auto record = [&](int first, const std::vector<std::string>& options) {
    std::ofstream{folder.file("second")} << header_of(2) << kAlloc << step(first, true) << step(first + 1, true);
    return run_program(hooked_job(folder, options, kAlloc + step(1, true) + step(2, true) + step(3, true),
                                  "cp " + folder.file("second") + " $TIDEPOOL_RAW/2.torch.jsonl"));
  };
  const std::string trace = folder.file("a.tide"), other = folder.file("a.2.tide");
  const ProgramResult together = record(3, {});
  CHECK(
      together.err.starts_with(trace + ": 2 processes trained; this trace has the ops and the memory of all of them"));
  CHECK_FALSE(std::filesystem::exists(other));
  const ProgramResult in_a_row = record(4, {"--iterations", "2"});
  CHECK(in_a_row.code == 0);
  CHECK(in_a_row.err == trace + ": 2 processes trained, one after the other; each has a trace of its own\n" + trace +
                            ": 3 kernels, 0 copies, 1 buffer, 3 iterations\n" + other +
                            ": 2 kernels, 0 copies, 1 buffer, 2 iterations\n");
  CHECK(summarize(load_trace(trace)).iterations == 3);
  CHECK(summarize(load_trace(other)).iterations == 2);
  CHECK_FALSE(std::filesystem::exists(folder.file("a.raw")));
}

TEST_CASE("a trace that cannot be written leaves the recording, and the exit code of a job that failed") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.file("a.tide"));
  for (const auto& [end, code] : {std::pair{"", 1}, std::pair{"exit 3", 3}}) {
    std::filesystem::remove_all(folder.file("a.raw"));
    const ProgramResult result = run_program(hooked_job(folder, {}, kAlloc + step(1, true), end));
    CHECK(result.code == code);
    CHECK_THAT(result.err, Catch::Matchers::EndsWith("tidepool: " + folder.file("a.tide") +
                                                     ": cannot be written: No space left on device\n" +
                                                     "tidepool: the recording is in " + folder.file("a.raw") +
                                                     "; `tidepool import` makes a trace of it\n"));
    CHECK(std::filesystem::exists(folder.file("a.raw")));
  }
}

TEST_CASE("the message about a job's end has its last output") {
  const ScratchFolder folder;
  const ProgramResult result = run_program(
      hooked_job(folder, {}, kAlloc + step(1, true), "echo 'ValueError: bad data' > $TIDEPOOL_RAW/1.said; exit 1"));
  CHECK(result.code == 1);
  CHECK(result.err.starts_with("tidepool: the job ended with exit status 1 (ValueError: bad data)\n"));
  const Trace trace = load_trace(folder.file("a.tide"));
  CHECK(summarize(trace).iterations == 1);
  CHECK(trace.data().meta.at("failure") == "ValueError: bad data");
}

TEST_CASE("a dry run in which a job failed or trained nothing says that its results are zeros") {
  const ScratchFolder folder;
  const auto said = [&](const std::string& dry, const std::string& records, const std::string& end) {
    std::vector<std::string> options{"--skip", "0"};
    if (!dry.empty()) options.push_back(dry);
    return run_program(hooked_job(folder, options, records, end)).err;
  };
  const std::string fails = "echo 'AssertionError: NaN!' > $TIDEPOOL_RAW/1.said; exit 1";
  const std::string hint = "tidepool: in a dry run, kernels compute nothing and their results are zeros, ";
  const std::string whole = kAlloc + step(1, true);
  CHECK_THAT(said("--dry", whole, fails),
             Catch::Matchers::StartsWith("tidepool: the job ended with exit status 1 (AssertionError: NaN!)\n" + hint));
  CHECK_THAT(said("--dry", kAlloc + step(1, false), ""), Catch::Matchers::StartsWith(hint));
  const std::string too_large = "echo 'torch.OutOfMemoryError: CUDA out of memory' > $TIDEPOOL_RAW/1.said; exit 1";
  for (const std::string& quiet : {said("--dry", whole, ""), said("--dry", whole, "exit 3"),
                                   said("--dry", whole, too_large), said("", whole, fails)})
    CHECK_THAT(quiet, !ContainsSubstring("in a dry run"));
}

TEST_CASE("a trace says why its job failed, and has no failure if it did not") {
  const ScratchFolder folder;
  const auto failure = [&](const std::string& end) {
    run_program(hooked_job(folder, {}, kAlloc + step(1, true), end));
    const auto meta = load_trace(folder.file("a.tide")).data().meta;
    const auto found = meta.find("failure");
    return found == meta.end() ? "none" : found->second;
  };
  CHECK(failure("exit 3") == "ended with exit status 3");
  CHECK(failure("kill -KILL $$") == "was killed by SIGKILL");
  CHECK(failure("echo 'ValueError: of a worker' > $TIDEPOOL_RAW/1.said; exit 0") == "none");
  // torchrun fails because of a rank, and may have any number.
  CHECK(failure("cd $TIDEPOOL_RAW; echo OutOfMemoryError > 5.said; touch -d '1 second ago' 5.said; "
                "echo ChildFailedError > 4.said; echo ChildFailedError > 6.said; exit 1") == "OutOfMemoryError");
}

TEST_CASE("a file that was begun on a full disk is no reason to keep the raw files") {
  const ScratchFolder folder;
  const ProgramResult result = run_program(
      hooked_job(folder, {}, kAlloc + step(1, true), "printf '{\"tidepool_raw\"' > $TIDEPOOL_RAW/2.torch.jsonl"));
  CHECK(result.code == 0);
  CHECK_FALSE(std::filesystem::exists(folder.file("a.raw")));
}

#ifdef TIDEPOOL_WITH_RECORDER

namespace {

/// The arguments that record a script on the fake driver.
std::vector<std::string> recording(const ScratchFolder& folder, const std::string& script,
                                   const std::vector<std::string>& options = {}) {
  std::ofstream{folder.file("script")} << script;
  std::vector<std::string> arguments{"record", "-o", folder.file("run.tide"), "--cupti", paths::fake_cupti()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", "env", tests::kPatience, paths::fake_job(), folder.file("script")});
  return arguments;
}

std::vector<raw::Log> raw_files(const ScratchFolder& folder) {
  std::vector<raw::Log> logs;
  for (const auto& entry : std::filesystem::directory_iterator{folder.file("run.raw")})
    logs.push_back(raw::read_raw(read_input(entry.path().string())));
  return logs;
}

}  // namespace

TEST_CASE("tidepool record makes a trace with every kernel, its buffers and its iterations") {
  const ScratchFolder folder;
  const ProgramResult result = run_program(recording(folder,
                                                     "function forward _Z7forwardPKfS0_Pf 8@0 8@8 8@16\n"
                                                     "function update _Z6updatePfPKf 8@0 8@8\n"
                                                     "alloc w 1048576\nalloc x 4096\n"
                                                     "repeat 3\npush iteration\nalloc a 65536\n"
                                                     "runtime-launch forward x w a\nlaunch update w a\nfree a\n"
                                                     "pop\nagain\n"));
  CHECK(result.code == 0);
  CHECK(result.err.starts_with(folder.file("run.tide") + ": 6 kernels, 0 copies, 5 buffers, 3 iterations\n"));
  CHECK_FALSE(std::filesystem::exists(folder.file("run.raw")));
  const Trace trace = load_trace(folder.file("run.tide"));
  CHECK(trace.data().losses.unknown_pointers == 0);
  CHECK(summarize(trace).uses == 3 * 5);
  CHECK(summarize(trace).evidence.at(static_cast<std::size_t>(Evidence::kConst)) == 3 * 3);
  CHECK(summarize(trace).ideal_peak == Bytes{1048576 + 4096 + 65536});
}

TEST_CASE("tidepool record gathers the files of all processes of the job") {
  const ScratchFolder folder;
  std::ofstream{folder.file("child")} << tests::kKernels + "alloc a 512\nlaunch add a a 1\n";
  const ProgramResult result = run_program(recording(
      folder, tests::kKernels + "alloc a 512\nlaunch add a a 1\nfork " + folder.file("child") + "\n", {"--keep-raw"}));
  CHECK(result.code == 0);
  CHECK(raw_files(folder).size() == 2);
}

TEST_CASE("tidepool record's options reach the recorder") {
  const ScratchFolder folder;
  run_program(recording(folder, tests::kKernels + "alloc a 512\nrepeat 4\npush step\nlaunch add a a 1\npop\nagain\n",
                        {"--keep-raw", "--skip", "1", "--iterations", "2", "--iteration-range", "step"}));
  REQUIRE(raw_files(folder).size() == 1);
  CHECK(raw_files(folder)[0].kernels.size() == 2);
}

TEST_CASE("fewer iterations than requested are recorded, with a message and exit code 1, also without PyTorch") {
  const ScratchFolder folder;
  const std::string two = tests::kKernels + "alloc a 512\nrepeat 2\npush iteration\nlaunch add a a 1\npop\nagain\n";
  const ProgramResult both = run_program(recording(folder, two, {"--iterations", "2"}));
  CHECK(both.code == 0);
  CHECK(both.err == folder.file("run.tide") + ": 2 kernels, 0 copies, 1 buffer, 2 iterations\n");
  const ProgramResult fewer = run_program(recording(folder, two, {"--iterations", "3"}));
  CHECK(fewer.code == 1);
  CHECK(fewer.err == both.err + "tidepool: 2 of 3 iterations are recorded: the job had no more\n");
  const ProgramResult stopped = run_program(recording(folder, two, {"--iterations", "3", "--signal", "USR1"}));
  CHECK(stopped.err ==
        both.err + "tidepool: 2 of 3 iterations are recorded: the job had no more while it was recorded\n");
}

TEST_CASE("tidepool record says when a job ran nothing on the device") {
  const ScratchFolder folder;
  const ProgramResult result = run_program(recording(folder, "alloc a 512\n"));
  CHECK(result.code == 1);
  CHECK(result.err ==
        "tidepool: nothing recorded: no kernel, copy or op was recorded; a message above gives the reason, or the job "
        "ran "
        "none\n");
  CHECK_FALSE(std::filesystem::exists(folder.file("run.raw")));
}

#endif

}  // namespace tidepool::record_test
