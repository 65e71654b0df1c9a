// A program on the dry device for a CUDA device: the answers that it gets, and its recording.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/skip.hpp"
#include "tracer/dry/device/device_count.hpp"
#include "tracer/raw/reader.hpp"
#include "traces/base/input.hpp"
#include "traces/import/importer.hpp"
#include "traces/summary.hpp"

namespace tidepool::run_test {
namespace {

using Json = nlohmann::json;

struct DryJob {
  ProgramResult result;
  raw::Log log;
};

DryJob run_job(const ScratchFolder& folder, const std::vector<std::string>& words = {}) {
  std::vector<std::string> record{
      "record", "--dry", "--capacity", "1GiB", "--keep-raw", "-o", folder.file("run.tide"), "--", paths::dry_job()};
  record.insert(record.end(), words.begin(), words.end());
  DryJob job{run_program(record), {}};
  for (const auto& entry : std::filesystem::directory_iterator{folder.file("run.raw")})
    job.log = raw::read_raw(read_input(entry.path().string()));
  return job;
}

struct Use {
  raw::Access access;
  raw::Evidence evidence;
  unsigned parameter, offset;
  bool operator==(const Use&) const = default;
};

/// The uses of the n-th kernel, in the order of its parameters.
std::vector<Use> uses_of(const raw::Log& log, std::size_t n) {
  std::vector<Use> uses;
  for (const auto& [launch, first] : log.launches)
    if (launch.correlation == log.kernels.at(n).correlation)
      for (std::size_t i = first; i < first + launch.uses; ++i)
        uses.push_back({log.uses[i].access, log.uses[i].evidence, log.uses[i].parameter, log.uses[i].offset});
  return uses;
}

TEST_CASE("a CUDA program runs without a GPU, and all of its work is recorded") {
  const ScratchFolder folder;
  const auto [result, log] = run_job(folder);
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK_THAT(
      result.err,
      ContainsSubstring("tidepool dry run: the program asked for cuFrobnicate, which the dry run does not answer\n"));
  CHECK(result.err.find("cuFrobnicate") == result.err.rfind("cuFrobnicate"));  // the message appears once

  CHECK(log.header.closed == 1);
  CHECK(log.header.source == raw::Source::kInterposer);
  REQUIRE(log.kernels.size() == 4);
  CHECK(log.text(log.kernels[0].name) == "_Z4axpyiPKfPf");
  CHECK(log.kernels[0].registers == 32);  // from the binary for this device, not from the one for 8.0
  CHECK(log.kernels[0].static_shared == 2048);
  CHECK(log.kernels[0].grid[0] == 8);
  CHECK(log.kernels[0].block[0] == 128);
  using enum raw::Access;
  CHECK(uses_of(log, 0) ==
        std::vector<Use>{{kRead, raw::Evidence::kConst, 1, 0}, {kTouch, raw::Evidence::kParameter, 2, 0}});
  CHECK(uses_of(log, 1) ==
        std::vector<Use>{{kTouch, raw::Evidence::kParameter, 0, 8}, {kTouch, raw::Evidence::kParameter, 0, 16}});
  for (const auto& [launch, first] : log.launches) CHECK(launch.unknown_pointers == 0);
  const auto product = [](raw::Access c) {
    return std::vector<Use>{{kRead, raw::Evidence::kSchema, 0, 0},
                            {kRead, raw::Evidence::kSchema, 0, 0},
                            {c, raw::Evidence::kSchema, 0, 0}};
  };
  CHECK(log.text(log.kernels[2].name) == "cublasSgemm");
  CHECK(uses_of(log, 2) == product(kWrite));  // beta is 0, so the output is not read
  CHECK(uses_of(log, 3) == product(kReadWrite));
  // 2 * 100 * 200 * 50 operations at 67 TFLOP/s and 5 MiB at 3.35 TB/s both take less time than a launch.
  CHECK(log.kernels[2].end - log.kernels[2].start == 2000);

  REQUIRE(log.copies.size() == 4);
  CHECK(log.copies[0].copy == raw::CopyKind::kHtoD);
  CHECK(log.copies[0].end - log.copies[0].start == 20971);  // 1 MiB at 50 GB/s
  CHECK(log.copies[1].copy == raw::CopyKind::kDtoH);
  for (const std::size_t replayed : {2u, 3u}) {
    CHECK(log.copies[replayed].copy == raw::CopyKind::kDtoD);
    CHECK(log.copies[replayed].to == log.copies[replayed].from + 4096);
  }
  CHECK(log.memsets.size() == 2);
  const auto allocations = std::count_if(log.memory.begin(), log.memory.end(), [](const raw::Memory& m) {
    return m.operation == raw::MemoryOperation::kAlloc;
  });
  CHECK(allocations == 4);
  CHECK(log.memory.size() == 8);
  CHECK(log.vmm.size() == 2);
  CHECK(log.syncs.size() == 1);
  CHECK(log.syncs[0].event == log.event_records.at(0).event);
}

TEST_CASE("kernels that a program loads itself are recorded with the buffers among their parameters") {
  const ScratchFolder folder;
  const auto [result, log] = run_job(folder, {"modules"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  REQUIRE(log.kernels.size() == 4);
  CHECK(log.text(log.kernels[0].name) == "fused");
  CHECK(log.kernels[0].registers == 40);
  CHECK(log.kernels[0].static_shared == 4096);
  CHECK(log.kernels[0].dynamic_shared == 512);
  CHECK(log.kernels[0].grid[1] == 2);
  using enum raw::Access;
  const std::vector<Use> both{{kTouch, raw::Evidence::kParameter, 0, 0}, {kTouch, raw::Evidence::kParameter, 1, 0}};
  CHECK(uses_of(log, 0) == both);
  // Its parameters came as one buffer, and the program stated its uses.
  CHECK(uses_of(log, 1) ==
        std::vector<Use>{{kRead, raw::Evidence::kInferred, 0, 0}, {kReadWrite, raw::Evidence::kInferred, 1, 0}});
  CHECK(log.text(log.kernels[2].name) == "mapped");
  CHECK(uses_of(log, 2) == std::vector<Use>{{kTouch, raw::Evidence::kParameter, 0, 0}});
  CHECK(log.text(log.kernels[3].name) == "unknown");
  CHECK(uses_of(log, 3).empty());
  for (const auto& [launch, first] : log.launches)
    CHECK(((launch.flags & raw::kNotScanned) != 0) == (launch.correlation == log.kernels[3].correlation));
}

TEST_CASE("a program on the dry device can fork while another thread launches") {
  const ScratchFolder folder;
  const ProgramResult result =
      run_program({"record", "--dry", "-o", folder.file("run.tide"), "--", paths::dry_job(), "fork"});
  INFO(result.err);
  CHECK(result.code == 0);
}

TEST_CASE("devices before the first entry of CUDA_VISIBLE_DEVICES that names none are seen") {
  CHECK(dry::devices_named("") == 0);
  CHECK(dry::devices_named("-1") == 0);
  CHECK(dry::devices_named("none") == 0);
  CHECK(dry::devices_named("0") == 1);
  CHECK(dry::devices_named("2, 3,GPU-74696465,MIG-1") == 4);
  CHECK(dry::devices_named("0,-1,1") == 1);
  CHECK(dry::devices_named("0,1,") == 2);
  CHECK(dry::devices_named("0,64") == 1);  // there are 64 devices
  CHECK(dry::devices_named(dry::device_list(64).c_str()) == 64);
}

TEST_CASE("a program that hides all devices sees none in a dry run") {
  const ScratchFolder folder;
  for (const char* const list : {"", "-1"}) {
    const ProgramResult result =
        run_program({"record", "--dry", "-o", folder.file("run.tide"), "--", "env",
                     std::string{"CUDA_VISIBLE_DEVICES="} + list, paths::dry_job(), "no-device"});
    INFO(result.err);
    CHECK(result.err.find("job: line") == std::string::npos);
    CHECK_THAT(result.err, ContainsSubstring("tidepool: nothing recorded: "));
  }
}

TEST_CASE("record says that --like-ranks shares nothing in a job of one rank") {
  const ScratchFolder folder;
  const ProgramResult result = run_program(
      {"record", "--dry", "--like-ranks", "--capacity", "1GiB", "-o", folder.file("run.tide"), "--", paths::dry_job()});
  CHECK(result.code == 0);
  CHECK_THAT(result.err, ContainsSubstring(
                             "tidepool: --like-ranks: the job has one rank, so nothing is shared; expected several\n"));
}

TEST_CASE("the trace of a dry run has the requested iterations, or fewer if the job had fewer") {
  const ScratchFolder folder;
  const std::string trace = folder.file("run.tide");
  const auto recorded = [&](const std::vector<std::string>& options) {
    std::filesystem::remove_all(folder.file("run.raw"));
    std::vector<std::string> words{"record", "--dry", "--capacity", "1GiB", "-o", trace};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", paths::dry_job()});
    return run_program(words);
  };
  // The job multiplies matrices twice, and launches other kernels before that.
  const ProgramResult both = recorded({"--iteration-kernel", "Sgemm", "--iterations", "2"});
  CHECK(both.code == 0);
  CHECK(summarize(load_trace(trace)).iterations == 2);
  const ProgramResult second = recorded({"--iteration-kernel", "Sgemm", "--skip", "1"});
  CHECK(second.code == 0);
  CHECK(summarize(load_trace(trace)).kernels == 1);
  const ProgramResult few = recorded({"--iteration-kernel", "Sgemm", "--skip", "1", "--iterations", "3"});
  CHECK(few.code == 1);
  CHECK_THAT(few.err, ContainsSubstring("\ntidepool: 1 of 3 iterations are recorded: the job had no more\n"));
  CHECK(summarize(load_trace(trace)).kernels == 1);
  const ProgramResult none = recorded({"--iteration-kernel", "Sgemm", "--skip", "2"});
  CHECK(none.code == 1);
  CHECK_THAT(none.err, ContainsSubstring("\ntidepool: the job had 2 iterations; expected more, or a --skip below 2\n"));
  const ProgramResult all = recorded({"--iteration-kernel", "Sgemm", "--skip", "1", "--iterations", "0"});
  CHECK(all.code == 0);
  CHECK(summarize(load_trace(trace)).kernels == 1);
  const ProgramResult unmarked = recorded({"--iterations", "1"});
  CHECK(unmarked.code == 1);
  CHECK_THAT(unmarked.err, ContainsSubstring("\ntidepool: no iterations were found in the job; expected "
                                             "--iteration-kernel to say where one begins\n"));
}

TEST_CASE("options that ask for all iterations of a dry run leave nothing out") {
  const ScratchFolder folder;
  const auto kernels = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"record", "--dry", "--capacity", "1GiB", "-o", folder.file("run.tide")};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", paths::dry_job()});
    const ProgramResult result = run_program(words);
    INFO(result.err);
    CHECK(result.code == 0);
    return summarize(load_trace(folder.file("run.tide"))).kernels;
  };
  const std::size_t all = kernels({});
  CHECK(kernels({"--skip", "0"}) == all);
  CHECK(kernels({"--iterations", "0"}) == all);
  CHECK(kernels({"--skip", "0", "--iterations", "0"}) == all);
}

TEST_CASE("without PyTorch's hook, a dry run in which a job failed says that its results are zeros") {
  const ScratchFolder folder;
  const auto said = [&](const std::string& end) {
    return run_program({"record", "--dry", "--capacity", "1GiB", "-o", folder.file("run.tide"), "--", "sh", "-c",
                        paths::dry_job() + "; " + end})
        .err;
  };
  const std::string hint = "tidepool: in a dry run, kernels compute nothing and their results are zeros, ";
  CHECK_THAT(said("exit 3"), ContainsSubstring("tidepool: the job ended with exit status 3\n" + hint));
  for (const std::string crash : {"ABRT", "FPE", "SEGV"})
    CHECK_THAT(said("ulimit -c 0; kill -" + crash + " $$"),
               ContainsSubstring("tidepool: the job was killed by SIG" + crash + "\n" + hint));
  for (const std::string end : {"exit 0", "kill -TERM $$", "kill -KILL $$", "kill -HUP $$", "kill -INT $$"})
    CHECK_THAT(said(end), !ContainsSubstring(hint));
}

TEST_CASE("the trace of a dry run says that its times are estimates") {
  const ScratchFolder folder;
  const DryJob job = run_job(folder);
  REQUIRE(job.result.code == 0);
  const Trace trace = load_trace(folder.file("run.tide"));
  CHECK(trace.data().meta.at("time") == "estimated");
  CHECK(trace.data().meta.at("mode") == "dry run: no device; device times are estimates");
  CHECK(trace.data().meta.at("device") == "NVIDIA H100 80GB HBM3");
}

TEST_CASE("a dry run refuses devices and sizes that it cannot stand in for") {
  const ScratchFolder folder;
  const auto refused = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"record", "--dry", "-o", folder.file("run.tide")};
    words.insert(words.end(), options.begin(), options.end());
    for (const char* const word : {"--", "true"}) words.emplace_back(word);
    const ProgramResult result = run_program(words);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK_THAT(refused({"--device", "h20"}),
             ContainsSubstring("tidepool: no device named 'h20', did you mean 'h200'?; known: h100-80gb, "));
  CHECK(refused({"--capacity", "1MiB"}) ==
        "tidepool: --capacity: 1MiB is no room for a program; driver and context keep 520 MiB of a device like "
        "h100-80gb\n");
  CHECK(refused({"--placement", "best-fit"}) ==
        "tidepool: --placement: 'best-fit'; expected lowest-first or top-down\n");
  CHECK(refused({"--routing", "fair"}) ==
        "tidepool: --routing: 'fair'; expected balanced, zipf, worst, or a file with the shares of places\n");
  std::ofstream{folder.file("shares")} << "0.5 0.x\n";
  CHECK(refused({"--routing", folder.file("shares")}) ==
        "tidepool: " + folder.file("shares") +
            ": '0.x'; expected numbers from 0, with blanks between them: the share of each place\n");
  CHECK_THAT(refused({"--capacity", "1xb"}), ContainsSubstring("tidepool: --capacity: "));
  CHECK(refused({"--signal", "USR1"}) ==
        "tidepool: --signal: a dry run records all that the job does; expected it without --dry\n");
  CHECK(refused({"--iteration-range", "step"}) ==
        "tidepool: --iteration-range: a dry run sees no NVTX ranges; expected --iteration-kernel\n");
  CHECK(refused({"--times", "a100-40gb"}) ==
        "tidepool: --times: what PyTorch's hook records is priced; expected --torch too\n");
  CHECK(refused({"--times", "a100-40gb", "--torch", "--kernels"}) ==
        "tidepool: --times: PyTorch's operators are priced; expected it without --kernels\n");
}

}  // namespace
}  // namespace tidepool::run_test
