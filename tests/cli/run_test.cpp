#include "simulator/plan_file.hpp"
#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "tests/program.hpp"
#include "traces/builder.hpp"
#include "traces/jsonl/jsonl.hpp"

using namespace tidepool;

TEST_CASE("run says what it needs") {
  const auto refusal = [](const std::vector<std::string>& arguments) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == 2);
    return result.err;
  };
  CHECK(refusal({"run", "--", "true"}) == "tidepool: run: expected --plan with --trace, or --layout\n");
  CHECK(refusal({"run", "--plan", "a.plan", "--", "true"}) ==
        "tidepool: run: --plan and --trace belong together; expected both or neither\n");
  CHECK(refusal({"run", "--layout", "a.layout", "--fallback", "7", "--", "true"}) ==
        "tidepool: --fallback: '7' is not a size; expected a whole number and B, kB, MB, GB, KiB, MiB or GiB, "
        "as in 512MiB\n");
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
                                         "optimizer as in the trace and ended in order\n"));
  CHECK(with("exit 7").code == 7);
}
