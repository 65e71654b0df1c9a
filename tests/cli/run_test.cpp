#include <string>
#include <vector>

#include "simulator/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "tests/program.hpp"
#include "traces/builder.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::run_test {

namespace {

/// What `run` says after a job that leaves this report; the exit code is checked. The folder has the plan a.plan for
/// the trace a.jsonl.
std::string said_of(const ScratchFolder& folder, const std::string& report, int code) {
  std::ofstream{folder.file("report")} << report;
  const ProgramResult result =
      run_program({"run", "--plan", folder.file("a.plan"), "--trace", folder.file("a.jsonl"), "--", "sh", "-c",
                   "cp " + folder.file("report") + " $TIDEPOOL_LIVE_REPORT"});
  CHECK(result.code == code);
  const std::size_t at = result.err.find("tidepool: ");
  return at == std::string::npos ? "" : result.err.substr(at);
}

}  // namespace

TEST_CASE("run refuses options without those that they need") {
  const auto refusal = [](const std::vector<std::string>& arguments) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK(refusal({"run", "--", "true"}) == "tidepool: run: expected --plan with --trace, or --layout\n");
  CHECK(refusal({"run", "--plan", "a.plan", "--", "true"}) ==
        "tidepool: run: --plan and --trace belong together; expected both or neither\n");
  CHECK(refusal({"run", "--layout", "a.layout", "--fallback", "7", "--", "true"}) ==
        "tidepool: --fallback: '7' is not a size; expected a number and B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, G "
        "or T, as in 512MiB\n");
}

TEST_CASE("run --enforce is refused without a plan") {
  const ProgramResult result = run_program({"run", "--layout", "a.layout", "--enforce", "--", "true"});
  CHECK(result.code == 2);
  CHECK(result.err == "tidepool: run: --enforce limits the job to a plan's capacity; expected --plan\n");
}

TEST_CASE("run says how many steps a job needs for a plan of several iterations") {
  TraceBuilder build;
  std::vector<VersionId> versions;
  for (const char* name : {"0", "1"}) {
    build.mark(MarkKind::kIteration, name);
    const BufferId buffer = build.alloc({.size = 512_B});
    versions.push_back(build.run({.duration = 1_us}, {{buffer, Access::kWrite, Evidence::kSchema}})[0]);
  }
  const Trace trace = build.finish();
  tests::PlanWriter plan{trace};
  plan.alloc(versions[0], 0_B).run(OpId{0}).alloc(versions[1], 512_B).run(OpId{1});
  PlanFile file{trace.hash(), {}, {}, plan.plan()};
  file.spec.capacity = 1_KiB;
  const ScratchFolder folder;
  write_file(folder.file("a.jsonl"), to_jsonl(trace));
  write_plan(folder.file("a.plan"), file);
  CHECK(said_of(folder, R"({"iterations":2,"deviations":0,"measured":0,"counts":{},"lost":[]})", 1) ==
        "tidepool: nothing measured: the 2 iterations of the trace were followed twice as one; expected three times or "
        "more, so a job of 7 steps or more: the first two times in a row only show which tensors outlive them\n");
}

TEST_CASE("run prints in one sentence which promise was not kept, and ends with 1") {
  // A step of one op that writes 512 B.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 512_B});
  const VersionId version = build.run({.duration = 1_us}, {{a, Access::kWrite, Evidence::kSchema}})[0];
  const Trace trace = build.finish();
  PlanFile file{trace.hash(), {}, {}, tests::PlanWriter{trace}.alloc(version, 0_B).run(OpId{0}).plan()};
  file.spec.capacity = 1_KiB;
  file.predicted.peak = 512_B;
  const ScratchFolder folder;
  write_file(folder.file("a.jsonl"), to_jsonl(trace));
  write_plan(folder.file("a.plan"), file);
  const auto said = [&](const std::string& report, int code) { return said_of(folder, report, code); };
  const std::string followed = R"("iterations":5,"deviations":0,"measured":3,"counts":{},"lost":[],"each":[])";
  CHECK(said("{" + followed + R"(,"peak_bytes":1024,"left_out":{}})", 0) == "");
  CHECK(said("{" + followed + R"(,"peak_bytes":1025,"left_out":{}})", 1) ==
        "tidepool: the step used 1.001 KiB, more than the 1 KiB that the plan promises\n");
  CHECK(said("{" + followed + R"(,"peak_bytes":1024,"between_peak_bytes":2048,"left_out":{}})", 1) ==
        "tidepool: between its steps the job used 2 KiB, more than the 1 KiB that the plan promises\n");
  CHECK(said("{" + followed + R"(,"peak_bytes":1536,"stays_bytes":512,"left_out":{}})", 1) ==
        "tidepool: the step used 1.5 KiB, more than the 1 KiB that the plan promises; the plan drops 512 B that stay: "
        "PyTorch cannot free memory of NumPy, of a data loader or of a library\n");
  CHECK(said("{" + followed +
                 R"(,"peak_bytes":1024,"between_peak_bytes":2048,"between_op":"aten::linear","left_out":{}})",
             1) ==
        "tidepool: between its steps the job used 2 KiB, more than the 1 KiB that the plan promises; the "
        "first op there was aten::linear\n");
  CHECK(said("{" + followed + R"(,"peak_bytes":512,"left_out":{"drop":7,"swap_in":1}})", 1) ==
        "tidepool: not carried out in full: in 3 iterations these actions could not be done: drop 7, swap_in 1\n");
  CHECK(said("{" + followed +
                 R"(,"peak_bytes":512,"left_out":{"drop":7},)"
                 R"("left_out_first":{"verb":"drop","buffer":0,"reason":"its tensor has ended"}})",
             1) ==
        "tidepool: not carried out in full: in 3 iterations these actions could not be done: drop 7; the first: drop "
        "of buffer 0, 512 B: its tensor has ended\n");
  CHECK(said("{" + followed +
                 R"(,"peak_bytes":512,"between_peak_bytes":2048,"between_unlike":true,"between_op":"aten::mm",)"
                 R"("left_out":{}})",
             1) ==
        "tidepool: in a step unlike the recorded one, or beside it, the job used 2 KiB, more than the 1 KiB that the "
        "plan promises; the first op there was aten::mm\n");
  CHECK(said(R"({"iterations":2,"deviations":0,"measured":0,"counts":{},"lost":[]})", 1) ==
        "tidepool: nothing measured: 2 iterations were as recorded; expected more: the first two in a row only show "
        "which tensors outlive a step\n");
  const std::string lost = R"("lost":[{"op":1,"expected":"aten::embedding","saw":"aten::mm"}])";
  CHECK(said(R"({"iterations":0,"deviations":5,"measured":0,"counts":{},)" + lost + "}", 1) ==
        "tidepool: not carried out: no iteration was as recorded: op 1: saw aten::mm; expected aten::embedding\n");
  CHECK(said(R"({"iterations":3,"deviations":8,"measured":1,"gave_up":true,"counts":{},)" + lost + "}", 1) ==
        "tidepool: not carried out: too many iterations in a row were not as recorded: op 1: saw aten::mm; expected "
        "aten::embedding\n");
  CHECK(said("{" + followed + R"(,"stopped":"RuntimeError: bad"})", 1) ==
        "tidepool: not carried out: RuntimeError: bad\n");
  CHECK(said("{" + followed + R"(,"out_of_memory_bytes":2048})", 1) ==
        "tidepool: out of memory: the job used 2 KiB; --enforce limits it to 1 KiB\n");
}

TEST_CASE("run prints the peaks of PyTorch's allocator if the job uses one, and says if it used more than promised") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 512_B});
  const VersionId version = build.run({.duration = 1_us}, {{a, Access::kWrite, Evidence::kSchema}})[0];
  const Trace trace = build.finish();
  PlanFile file{trace.hash(), {}, {}, tests::PlanWriter{trace}.alloc(version, 0_B).run(OpId{0}).plan()};
  file.spec.capacity = 1_KiB;
  const ScratchFolder folder;
  write_file(folder.file("a.jsonl"), to_jsonl(trace));
  write_plan(folder.file("a.plan"), file);
  write_file(
      folder.file("report"),
      R"({"iterations":5,"deviations":0,"measured":3,"counts":{},"lost":[],"each":[],"left_out":{},)"
      R"("unlike":2,"unlike_steps":[4,7],"peak_bytes":1024,"allocated_peak_bytes":1536,"reserved_peak_bytes":2097152})");
  std::vector<std::string> command{"run",
                                   "--plan",
                                   folder.file("a.plan"),
                                   "--trace",
                                   folder.file("a.jsonl"),
                                   "--",
                                   "sh",
                                   "-c",
                                   "cp " + folder.file("report") + " $TIDEPOOL_LIVE_REPORT"};
  const ProgramResult said = run_program(command);
  CHECK(said.code == 1);
  CHECK_THAT(said.err,
             ContainsSubstring("\ntidepool: PyTorch's allocator used 1.5 KiB, more than the 1 KiB that the plan "
                               "promises\n"));
  CHECK_THAT(said.err, ContainsSubstring("steps               5 as recorded, 2 not: steps 4, 7\n"));
  CHECK_THAT(said.err, ContainsSubstring("measured peak       1 KiB\nallocator's peak    1.5 KiB\nreserved peak       "
                                         "2 MiB\n"));
  command.insert(command.begin() + 1, "--json");
  CHECK_THAT(run_program(command).out, ContainsSubstring(R"("allocated_peak_bytes": 1536,)") ||
                                           ContainsSubstring(R"("allocated_peak_bytes":1536,)"));
}

TEST_CASE("run passes on a command's exit status, and says if the plan was not carried out") {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 512_B});
  const VersionId version = build.run({.duration = 1_us}, {{a, Access::kWrite, Evidence::kSchema}})[0];
  const Trace trace = build.finish();
  const PlanFile file{trace.hash(), {}, {}, tests::PlanWriter{trace}.alloc(version, 0_B).run(OpId{0}).plan()};
  const ScratchFolder folder;
  const std::string trace_path = folder.file("a.jsonl"), plan_path = folder.file("a.plan");
  write_file(trace_path, to_jsonl(trace));
  write_plan(plan_path, file);

  const std::vector<std::string> run{"run", "--plan", plan_path, "--trace", trace_path, "--", "sh", "-c"};
  const auto with = [&](const std::string& script) {
    std::vector<std::string> arguments = run;
    arguments.push_back(script);
    return run_program(arguments);
  };
  const ProgramResult idle = with("echo done");
  CHECK(idle.code == 1);
  CHECK(idle.out == "done\n");
  CHECK_THAT(idle.err, ContainsSubstring("tidepool: not carried out: no process of the command stepped a PyTorch "
                                         "optimizer as in the trace and ended normally\n"));
  CHECK(with("exit 7").code == 7);
}

TEST_CASE("run says which bytes of a plan's savings are memory of libraries, and promises no less than what stays") {
  // op0 reads x and uses a workspace | op1 reads x; the plan has the workspace on the host then.
  TraceBuilder build;
  const BufferId x = build.existing({.size = 512_B});
  const BufferId workspace = build.existing({.size = 1_KiB});
  const VersionId used = build.run({.duration = 1_us}, {{x, Access::kRead, Evidence::kSchema},
                                                        {workspace, Access::kReadWrite, Evidence::kInferred}})[1];
  build.run({.duration = 1_us}, {{x, Access::kRead, Evidence::kSchema}});
  const Trace trace = build.finish();
  tests::PlanWriter writer{trace};
  writer.alloc(trace.first_version(x), 0_B).alloc(trace.first_version(workspace), 512_B).run(OpId{0});
  writer.swap_out(used).drop(used).run(OpId{1}).swap_in(used, 512_B);
  PlanFile file{trace.hash(), {}, {}, writer.plan()};
  file.spec.capacity = 1_KiB;
  const ScratchFolder folder;
  write_file(folder.file("a.jsonl"), to_jsonl(trace));
  write_plan(folder.file("a.plan"), file);
  const auto said = [&](int allocated, int code) {
    return said_of(folder,
                   R"({"iterations":5,"deviations":0,"measured":3,"counts":{},"lost":[],"each":[],"left_out":{},)"
                   R"("peak_bytes":512,"allocated_peak_bytes":)" +
                       std::to_string(allocated) + "}",
                   code);
  };
  const std::string stays =
      "tidepool: 1 KiB that the plan saves are not saved: they are memory of libraries such as cuBLAS, which the job "
      "cannot move; PyTorch's allocator needs up to 2 KiB\n";
  CHECK(said(2048, 0) == stays);
  CHECK(said(2560, 1) == stays +
                             "tidepool: PyTorch's allocator used 2.5 KiB, more than the 2 KiB that the plan promises "
                             "with 1 KiB of libraries, which stay on the device\n");
}

}  // namespace tidepool::run_test
