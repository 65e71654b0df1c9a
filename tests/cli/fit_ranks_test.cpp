// tidepool fit of a job of several ranks.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "traces/builder.hpp"
#include "traces/job/job_output.hpp"

namespace tidepool::fit_ranks_test {
namespace {

using Json = nlohmann::json;

/// A step of two ops. The second one starts at `late` and needs `size` bytes.
/// @param failure  why the job failed; "" if it did not
Trace rank(Bytes size, Nanos late, const std::string& failure = "") {
  TraceBuilder build;
  if (!failure.empty()) build.meta()["failure"] = failure;
  const BufferId small = build.alloc({.size = 2_MiB});
  build.run({.name = build.text("first"), .start = 0_us, .launch = 0_us, .duration = 1_us}, {{small, Access::kWrite}});
  const BufferId large = build.alloc({.size = size});
  build.run({.name = build.text("large"), .start = late, .launch = late, .duration = 1_us}, {{large, Access::kWrite}});
  build.free(large);
  build.free(small);
  return build.finish();
}

std::string job_of(const ScratchFolder& folder, std::vector<Trace> traces, LoadedJob job = {}) {
  for (std::size_t i = 0; i < traces.size(); ++i) job.job.ranks.push_back({"", "", 5_us});
  job.traces = std::move(traces);
  write_job(folder.file("job.json"), job);
  return folder.file("job.json");
}

TEST_CASE("for ranks that do not fit, fit names the one that runs out first, not the largest") {
  const ScratchFolder folder;
  const std::string job = job_of(folder, {rank(1_GiB, 1_us), rank(100_GiB, 40_us), rank(90_GiB, 30_us)});
  const ProgramResult run = run_program({"fit", job, "--device", "h100-80gb"});
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_THAT(run.out,
             Catch::Matchers::StartsWith("does not fit: rank 2 runs out first, 35 us after the job's start: "));
  const Json json = Json::parse(run_program({"fit", job, "--device", "h100-80gb", "--json"}).out);
  CHECK(json.at("fits") == false);
  CHECK(json.at("first_rank") == 2);
  CHECK(json.at("ranks").at(0).at("fits") == true);
  CHECK(json.at("ranks").at(1).at("fits") == false);
  CHECK(json.at("ranks").at(1).at("at_ns") == 45'000);
}

TEST_CASE("a rank with a share of the device's memory runs out where its live bytes exceed the share") {
  // 45 GiB at 10 us are more than half of 80 GB, and less than all of it. The peak is at 40 us.
  TraceBuilder build;
  build.meta()["setting.memory_fraction"] = "0.5";
  for (const auto& [size, at] : {std::pair{45_GiB, 10_us}, std::pair{50_GiB, 40_us}}) {
    const BufferId buffer = build.alloc({.size = size});
    build.run({.name = build.text("op"), .start = at, .launch = at, .duration = 1_us}, {{buffer, Access::kWrite}});
    build.free(buffer);
  }
  const ScratchFolder folder;
  const std::string job = job_of(folder, {rank(1_GiB, 1_us), build.finish()});
  const ProgramResult run = run_program({"fit", job, "--device", "h100-80gb"});
  CHECK_THAT(run.out,
             Catch::Matchers::StartsWith("does not fit: rank 1 runs out first, 15 us after the job's start: "));
}

TEST_CASE("for ranks that all fit, fit names the one that takes most") {
  const ScratchFolder folder;
  const std::string job = job_of(folder, {rank(1_GiB, 1_us), rank(4_GiB, 1_us), rank(2_GiB, 1_us)});
  const ProgramResult run = run_program({"fit", job, "--device", "h100-80gb"});
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Catch::Matchers::StartsWith("all ranks fit; rank 1 takes most: "));
  CHECK_THAT(run.out, ContainsSubstring("\n     1  yes  "));
}

TEST_CASE("each group that communicates has buffers of NCCL on its ranks, which are assumed") {
  const ScratchFolder folder;
  const auto fit = [&](LoadedJob job) {
    TraceData data = rank(1_GiB, 1_us).data();
    for (Op& op : data.ops) op.kind = OpKind::kCollective;
    const Trace each{std::move(data)};
    const std::string file = job_of(folder, {each, each, each}, std::move(job));
    const ProgramResult run = run_program({"fit", file, "--device", "h100-80gb", "--json"});
    INFO(run.err);
    return std::pair{Json::parse(run.out).at("ranks"), run.err};
  };
  LoadedJob job;
  job.job.groups = {{"all", {0, 1, 2}}, {"two", {1, 2}}, {"unused", {0, 2}}};
  job.job.collectives = {{.name = "all_reduce", .group = 0, .ops = {OpId{0}, OpId{0}, OpId{0}}},
                         {.name = "all_reduce", .group = 1, .ops = {OpId{1}, OpId{1}}}};
  const auto [alone, silent] = fit({});
  const auto [together, said] = fit(job);
  const auto more = [&, &without = alone, &with = together](std::size_t rank, const char* key) {
    return Bytes{with.at(rank).at(key).get<std::int64_t>() - without.at(rank).at(key).get<std::int64_t>()};
  };
  CHECK(more(0, "predicted_bytes") == 688_MiB);
  CHECK(more(1, "predicted_bytes") == 688_MiB + 544_MiB);
  CHECK(more(2, "high_bytes") == 688_MiB + 544_MiB);
  CHECK(more(2, "low_bytes") == 0_B);
  CHECK(alone.at(0).at("certain") == true);
  CHECK(together.at(0).at("certain") == false);
  CHECK_THAT(said, ContainsSubstring("job.json: buffers of NCCL are assumed: 544 MiB for each group of two ranks"));
  CHECK_THAT(silent, !ContainsSubstring("NCCL"));
}

TEST_CASE("ranks whose sizes rest on assumed values do not fit for certain, and fit says what was assumed") {
  const ScratchFolder folder;
  TraceData data = rank(2_GiB, 1_us).data();
  data.meta["assumed_sizes"] = "sizes rest on values that a dry run does not know: train.py:7 (aten::nonzero)";
  const std::string job = job_of(folder, {rank(1_GiB, 1_us), Trace{std::move(data)}});
  const ProgramResult run = run_program({"fit", job, "--device", "h100-80gb"});
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Catch::Matchers::StartsWith("all ranks fit; rank 1 takes most: "));
  CHECK_THAT(run.out.substr(0, run.out.find('\n')), Catch::Matchers::EndsWith("; not for certain"));
  CHECK_THAT(run.err, ContainsSubstring("train.py:7 (aten::nonzero)"));
}

TEST_CASE("ranks of a dry run fit their own device unless another one is named") {
  const ScratchFolder folder;
  TraceData data = rank(1_GiB, 1_us).data();
  const std::string unknown = job_of(folder, {Trace{TraceData{data}}});
  CHECK_THAT(run_program({"fit", unknown}).err, ContainsSubstring("--device: expected the device"));
  data.meta["setting.dry_device"] = "rtx-3090";
  const std::string job = job_of(folder, {Trace{std::move(data)}});
  CHECK(run_program({"fit", job}).out == run_program({"fit", job, "--device", "rtx-3090"}).out);
  CHECK_THAT(run_program({"fit", job}).out, ContainsSubstring(" on rtx-3090\n"));
}

TEST_CASE("fit cannot judge ranks of a failed job that fit up to its failure") {
  const ScratchFolder folder;
  const std::string killed = "was killed by SIGKILL";
  std::string job = job_of(folder, {rank(1_GiB, 1_us, killed), rank(4_GiB, 1_us, killed)});
  const ProgramResult run = run_program({"fit", job, "--device", "h100-80gb"});
  CHECK(run.code == 1);
  CHECK_THAT(run.out, Catch::Matchers::StartsWith("cannot tell: the traces end before a training step; until then rank "
                                                  "1 takes most: "));
  CHECK_THAT(run.err,
             ContainsSubstring("job.json: the job failed: was killed by SIGKILL; what it did until then is judged\n"));
  CHECK(Json::parse(run_program({"fit", job, "--device", "h100-80gb", "--json"}).out).at("fits").is_null());
  job = job_of(folder, {rank(1_GiB, 1_us, killed), rank(100_GiB, 1_us, killed)});
  CHECK(run_program({"fit", job, "--device", "h100-80gb"}).code == 0);  // rank 1 was too large before it failed
}

TEST_CASE("fit cannot judge ranks on a larger device than the one on which a rank ran out of memory") {
  const ScratchFolder folder;
  TraceData data = rank(1_GiB, 1_us, "ended with exit status 1").data();
  data.meta["allocated_peak_bytes"] = data.meta["reserved_peak_bytes"] = std::to_string((1_GiB).count());
  const Trace other{TraceData{data}};
  data.meta["failed_requests"] = "1";
  data.meta["device_total_bytes"] = std::to_string((10_GiB).count());
  data.ops[0].phase = Phase::kBackward;  // it trained before
  const std::string job = job_of(folder, {other, Trace{std::move(data)}});
  const ProgramResult beyond = run_program({"fit", job, "--device", "h100-80gb"});
  CHECK(beyond.code == 1);
  CHECK_THAT(beyond.out, Catch::Matchers::StartsWith("cannot tell: the job ran out of memory where it was recorded; "));
  CHECK_THAT(run_program({"fit", job, "--device", "h100-80gb", "--capacity", "10GiB"}).out,
             Catch::Matchers::StartsWith("does not fit: rank 1 runs out first, "));
}

TEST_CASE("fit of a command that starts several ranks judges them") {
  const std::string ranks = std::filesystem::path{paths::program()}.replace_filename("tidepool_dry_ranks");
  const ProgramResult run = run_program({"fit", "--device", "t4", "--json", "--", "env", "LOCAL_WORLD_SIZE=2", ranks});
  INFO(run.err);
  const Json json = Json::parse(run.out);
  CHECK(json.at("job") == "env LOCAL_WORLD_SIZE=2 " + ranks);
  CHECK(json.at("ranks").size() == 2);
  CHECK(json.at("fits") == true);
}

}  // namespace
}  // namespace tidepool::fit_ranks_test
