// Jobs of several ranks on the stand-in: what is recorded of each, and how they are joined.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/torch_python.hpp"
#include "traces/job/job.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::json;

/// The program of tests/dry/ranks.cpp.
std::string ranks() { return std::filesystem::path{TIDEPOOL_PROGRAM}.replace_filename("tidepool_dry_ranks"); }

ProgramResult record(const std::string& output, const std::vector<std::string>& command) {
  std::vector<std::string> all{"record", "--dry", "--devices", "2", "-o", output, "--"};
  all.insert(all.end(), command.begin(), command.end());
  return run_program(all);
}

std::vector<std::string> names(const Job& job) {
  std::vector<std::string> all;
  for (const JobCollective& each : job.collectives) all.push_back(each.name);
  return all;
}

TEST_CASE("a job of two ranks that use NCCL is a trace of each, and a job file that joins them") {
  const ScratchFolder folder;
  const ProgramResult run = record(folder.file("run.tide"), {ranks()});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.err, ContainsSubstring("run.tide: 2 ranks, 7 collectives of 1 group\n"));
  CHECK_THAT(run.err, ContainsSubstring("the program asked for memory on two devices in one process, which the dry run "
                                        "does not answer\n"));
  const LoadedJob loaded = load_job(folder.file("run.tide"));
  CHECK(names(loaded.job) == std::vector<std::string>{"all_reduce", "all_gather", "all_gather", "reduce_scatter",
                                                      "send", "send", "all_reduce"});
  REQUIRE(loaded.traces.size() == 2);
  const Trace& trace = loaded.traces[1];
  const JobCollective& gather = loaded.job.collectives[2];
  CHECK(gather.input == 4_MiB);
  CHECK(gather.cost == 10_us);  // half of 8 MiB at 450 GB/s is 9.3 us, less than the least of any
  const Op& op = trace.op(gather.ops[1]);
  CHECK(trace.text(op.name) == "ncclAllGather");
  const auto uses = trace.uses(gather.ops[1]);
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].access == Access::kRead);
  CHECK(uses[1].access == Access::kWrite);
  CHECK(uses[1].evidence == Evidence::kSchema);
  CHECK(trace.buffer(trace.version(uses[1].out).buffer).size == 8_MiB);
  CHECK(trace.buffer(trace.version(uses[1].out).buffer).device == 1);
  CHECK(run_program({"simulate", folder.file("run.tide")}).code == 0);
  CHECK(!std::filesystem::exists(folder.file("run.raw")));
}

TEST_CASE("a rank that waits for one that has ended ends with a message") {
  const ScratchFolder folder;
  const ProgramResult run = record(folder.file("run.tide"), {ranks(), "leave"});
  INFO(run.err);
  CHECK(run.code == 1);
  CHECK_THAT(run.err, ContainsSubstring(
                          "tidepool dry run: rank 0 of 2 waits in ncclAllReduce (all_reduce 4): rank 1 (process "));
  CHECK_THAT(run.err, ContainsSubstring(") has ended\n"));
  CHECK_THAT(run.err, ContainsSubstring(
                          "run.tide: 1 more collectives are not in the traces of all their ranks; they are kernels\n"));
}

TEST_CASE("torchrun's processes are the ranks of a job, whose gradients are reduced as DDP says") {
  const std::string python = tests::torch_python();
  if (python.empty()) return;
  const ScratchFolder folder;
  const ProgramResult run =
      run_program({"record", "--dry", "-o", folder.file("run.tide"), "--", python, "-m", "torch.distributed.run",
                   "--standalone", "--nproc-per-node", "2", TIDEPOOL_SOURCE_DIR "/tests/dry/ddp.py"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("rank 0: the sum is 3\n"));
  CHECK_THAT(run.out, ContainsSubstring("rank 1: the sum is 3\n"));
  const LoadedJob loaded = load_job(folder.file("run.tide"));
  REQUIRE(loaded.traces.size() == 2);
  // Three steps of four linear layers of 512 with biases, in 32 bits; all else that is reduced are numbers of 8 bytes.
  constexpr std::int64_t kGradients = 4 * (512 * 512 + 512) * 4;
  std::int64_t reduced = 0;
  for (const JobCollective& each : loaded.job.collectives)
    if (each.name == "all_reduce" && each.input > 8_B) reduced += each.input->count();
  CHECK(reduced == 3 * kGradients);
  const Json info = Json::parse(run_program({"info", folder.file("run.rank1.tide"), "--json"}).out);
  CHECK(info.at("losses").at("unmatched_frees") == 0);
}

}  // namespace
}  // namespace tidepool
