// Jobs on the command line: import, info, simulate.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/job_case.hpp"
#include "tests/program.hpp"
#include "tests/rank_profiles.hpp"
#include "traces/base/input.hpp"
#include "traces/job/job_output.hpp"

namespace tidepool::job_test {

using Json = nlohmann::json;
using tests::rank_profile;

namespace {

/// Imports a folder with the profiles of two ranks, and returns the path of the job file.
std::string small_job(const ScratchFolder& scratch) {
  const std::string runs = scratch.file("runs");
  std::filesystem::create_directory(runs);
  write_file(runs + "/r0.json", rank_profile(0, 200));
  write_file(runs + "/r1.json", rank_profile(1, 940));
  write_file(runs + "/notes.txt", "not a profile");
  const std::string job = scratch.file("step.json");
  const ProgramResult imported = run_program({"import", runs, "--format", "kineto", "-o", job});
  REQUIRE(imported.code == 0);
  return job;
}

}  // namespace

TEST_CASE("tidepool simulate of a job says when collectives begin and end, and who waited for whom") {
  const ScratchFolder scratch;
  const std::string job = small_job(scratch);
  const Json info = Json::parse(run_program({"info", job, "--json"}).out);
  CHECK(info["ranks"].size() == 2);
  CHECK(info["ranks"][1]["info"]["ops"] == 4);
  CHECK(info["collectives"][0]["cost_ns"] == 60'000);
  const ProgramResult ran = run_program({"simulate", job, "--json"});
  CHECK(ran.code == 0);
  const Json result = Json::parse(ran.out);
  // As recorded, in us after the first launch: the collective begins at 930 and ends at 990, the last kernel at 1065.
  CHECK(result["makespan_ns"] == 1'065'000);
  CHECK(result["recorded_ns"] == 1'065'000);
  CHECK(result["collective_end_difference_ns"] == 0);
  CHECK(result["collectives"][0]["begin_ns"] == 930'000);
  CHECK(result["collectives"][0]["last_rank"] == 1);
  CHECK(result["ranks"][0]["waited_for_rank_ns"] == Json{0, 740'000});
  CHECK(result["ranks"][1]["waited_ns"] == 0);
  CHECK(result["critical_path"][0]["rank"] == 1);
  CHECK(run_program({"simulate", job, "--json", "-j", "1"}).out == ran.out);
  CHECK(run_program({"simulate", job}).out.find("collectives end within 0 ns of the recording") != std::string::npos);
  // Without the host's time, the all-reduce and the later ops begin earlier.
  CHECK(Json::parse(run_program({"simulate", job, "--json", "--scale", "0", "--of", "host"}).out)["makespan_ns"] <
        1'065'000);
}

TEST_CASE("tidepool report of a job shows the job of simulate, and refuses plans and other inputs") {
  const ScratchFolder scratch;
  const std::string job = small_job(scratch), output = scratch.file("r.html");
  const ProgramResult made = run_program({"report", job, "--capacity", "1GiB", "-o", output});
  CHECK(made.code == 0);
  CHECK(made.out.starts_with(output + ": 2 ranks, "));
  const std::string page = content_of(output), tag = "id=\"content\">";
  const std::size_t begin = page.find(tag) + tag.size();
  const Json shown = Json::parse(page.substr(begin, page.find("</script>", begin) - begin))["job"];
  const Json simulated = Json::parse(run_program({"simulate", job, "--json"}).out);
  CHECK(shown["makespan_ns"] == simulated["makespan_ns"]);
  CHECK(shown["ranks"][0]["waited_ns"] == simulated["ranks"][0]["waited_ns"]);
  CHECK(shown["ranks"][0]["waits"] == Json{190'000, 930'000});  // see the test above: 740 us for rank 1
  CHECK(shown["ranks"][1]["moves"] == Json{930'000, 990'000});
  CHECK(shown["path"].size() == simulated["critical_path"].size());
  CHECK(shown["first_out"].is_null());
  const auto complaint = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"report", "-o", output});
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK(complaint({job, "--policy", "tide"}) == "tidepool: " + job +
                                                    ": a report of a job shows it without plans; expected only "
                                                    "--capacity and --machine of the options of a run\n");
  CHECK(complaint({job, job}) == "tidepool: " + job + ": a job and other inputs; expected the job alone\n");
  CHECK(complaint({scratch.file("step.rank0.tide"), "--scale", "2"}) ==
        "tidepool: --scale: " + scratch.file("step.rank0.tide") + " is no job file; this option needs one\n");
}

TEST_CASE("tidepool simulate of a job writes a plan for each rank, which its own trace confirms") {
  const auto rank = [](std::int64_t parts) {  // a is away while b is there
    TraceBuilder build;
    const BufferId a = build.alloc({.size = 1_MiB * parts, .kind = BufferKind::kActivation});
    build.run({.duration = 10_us}, {{a, Access::kWrite, Evidence::kSchema}});
    const BufferId b = build.alloc({.size = 1_MiB * parts, .kind = BufferKind::kActivation});
    build.run({.duration = 10_us}, {{b, Access::kWrite, Evidence::kSchema}});
    build.free(b);
    build.run({.kind = OpKind::kCollective}, {});
    build.run({.duration = 10_us}, {{a, Access::kRead, Evidence::kSchema}});
    build.free(a);
    return build.finish();
  };
  const ScratchFolder scratch;
  const std::string job = scratch.file("job.json");
  LoadedJob ranks = tests::job_of({rank(1), rank(2)}, {2_us}, {0_us, 0_us});
  write_job(job, ranks);
  const auto simulate = [&](const std::string& capacity) {
    return run_program(
        {"simulate", job, "--policy", "lru-swap", "--capacity", capacity, "--plan-out", scratch.file("run.plan.zst")});
  };
  REQUIRE(simulate("0.6x").code == 0);
  for (const std::string number : {"0", "1"}) {
    const ProgramResult ran = run_program({"validate", scratch.file("run.rank" + number + ".plan.zst"), "--trace",
                                           scratch.file("job.rank" + number + ".tide"), "--json"});
    CHECK(ran.code == 0);
    CHECK(Json::parse(ran.out)["corrupt_bytes"] == 0);
  }
  const ProgramResult failed = simulate("0.4x");
  CHECK(failed.code == 1);
  CHECK(failed.err == scratch.file("run.plan.zst") + ": not written; not all ranks have a plan\n");
  CHECK(run_program({"simulate", job, "--plan-out", "run.plan"}).err ==
        "tidepool: --plan-out: the ranks run as recorded; expected a --policy\n");
}

TEST_CASE("tidepool simulate of a job refuses unsupported options") {
  const ScratchFolder scratch;
  const std::string job = small_job(scratch);
  const auto complaint = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"simulate", job});
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK(complaint({"--iterations", "20"}) ==
        "tidepool: --iterations: the ranks of a job run one step alone; expected the trace of one rank\n");
  CHECK(complaint({"--machine", "a100-pcie4"}) ==  // --machine asks for a run of a policy, even if it names the default
        "tidepool: " + job + ": rank 0: the trace has no buffers; expected a recording of memory\n");
  CHECK(complaint({"--policy", "none,tide"}) == "tidepool: the lists ask for 2 runs; expected one run of the job\n");
  CHECK(complaint({"--policy", "order-peak"}) ==
        "tidepool: --policy: 'order-peak' puts ops into another order; the ranks of a job keep theirs\n");
  CHECK_THAT(complaint({"--policy", "lrux"}), ContainsSubstring("no policy named 'lrux'"));
  CHECK(complaint({"--rank", "1"}) == "tidepool: --rank: applies to --scale, which is not given; expected both\n");
  CHECK(complaint({"--rank", "2", "--scale", "2"}) == "tidepool: --rank: 2; expected ranks of the job, 0 to 1\n");
  CHECK(complaint({"--rank", "x"}) == "tidepool: --rank: 'x' is no rank; expected whole numbers, as in 0,3\n");
  CHECK(complaint({"--scale", "-1"}) ==
        "tidepool: --scale: '-1' is no factor; expected a number from 0 to 1000, as in 0.5\n");
  CHECK(complaint({"--of", "gpu"}) == "tidepool: --of: 'gpu'; expected all, ops or host\n");
  std::filesystem::remove(scratch.file("step.rank1.tide"));
  CHECK(complaint({}) == "tidepool: " + job + ": ranks[1].trace: " + scratch.file("step.rank1.tide") +
                             ": cannot be opened: No such file or directory\n");
  const ProgramResult alone = run_program({"simulate", scratch.file("step.rank0.tide"), "--scale", "2"});
  CHECK(alone.code == 2);
  CHECK(alone.err ==
        "tidepool: --scale: " + scratch.file("step.rank0.tide") + " is no job file; this option needs one\n");
}

TEST_CASE("a command that takes one trace says that it was given a job file") {
  const ScratchFolder scratch;
  const std::string job = small_job(scratch);
  const std::vector<std::vector<std::string>> commands{
      {"sweep", job}, {"bound", job, "--capacity", "1x"}, {"explain", job}, {"import", job, "-o", scratch.file("x")}};
  for (const std::vector<std::string>& command : commands) {
    const ProgramResult result = run_program(command);
    CHECK(result.code == 2);
    CHECK(result.err ==
          "tidepool: " + job + ": is a job file, which joins the traces of several ranks; expected one of these\n");
  }
}

TEST_CASE("tidepool import of a folder with profiles names the format that joins them") {
  const ScratchFolder scratch;
  small_job(scratch);
  const std::string runs = scratch.file("runs");
  const ProgramResult result = run_program({"import", runs, "-o", scratch.file("x.json")});
  CHECK(result.code == 2);
  CHECK(result.err == "tidepool: " + runs +
                          ": profiles of torch.profiler; expected --format kineto, which joins those of all ranks to a "
                          "job\n");
}

TEST_CASE("tidepool import refuses a folder without profiles, and options of one trace for several") {
  const ScratchFolder scratch;
  const std::string runs = scratch.file("none");
  std::filesystem::create_directory(runs);
  const auto complaint = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"import", runs, "--format", "kineto", "-o", scratch.file("x.json")});
    return run_program(arguments).err;
  };
  CHECK(complaint({}) == "tidepool: " + runs + ": no Kineto file; expected one for each rank\n");
  write_file(runs + "/r0.json", rank_profile(0, 200));
  std::filesystem::create_directory(scratch.file("x.json"));
  CHECK(complaint({}) ==
        "tidepool: " + scratch.file("x.json") + ": is no file; expected a file, with the traces beside it\n");
  CHECK_FALSE(std::filesystem::exists(scratch.file("x.rank0.tide")));
  CHECK(complaint({"--device", "0"}) ==
        "tidepool: " + runs + ": several ranks; expected no --device and --iteration\n");
  std::filesystem::remove(scratch.file("x.json"));
  CHECK(complaint({"--with", runs}) == "tidepool: " + runs + ": 0 execution traces; expected 1, one for each rank\n");
  write_file(runs + "/et_4.json", R"({"schema": "1.0.1", "nodes": []})");
  CHECK(complaint({"--with", runs}) ==
        "tidepool: " + runs + "/et_4.json: an execution trace of rank 4; expected one of each rank, 0 to 0\n");
  write_file(runs + "/r2.json", rank_profile(2, 200));
  const std::string traces = scratch.file("traces");
  std::filesystem::create_directory(traces);
  CHECK(complaint({"--with", traces}) == "tidepool: " + runs + ": ranks 0, 2; expected 0 to 1, each once\n");
}

}  // namespace tidepool::job_test
