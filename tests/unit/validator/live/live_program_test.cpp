#include "validator/live/live_program.hpp"

#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "tests/program.hpp"
#include "traces/base/child_process.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"

namespace tidepool::live_program_test {

using tests::PlanWriter;

namespace {

/// op0 writes a | op1 reads a, writes b | op2 reads a and b. By default every use is known from the op's schema.
struct ThreeOps {
  Evidence evidence = Evidence::kSchema;
  OpKind first = OpKind::kKernel;
  VersionId a = {}, b = {};
  Trace trace = make();

  Trace make() {
    TraceBuilder build;
    const BufferId one = build.alloc({.size = 512_B}), two = build.alloc({.size = 512_B});
    a = build.run({.kind = first, .duration = 1_us}, {{one, Access::kWrite, evidence}})[0];
    b = build.run({.duration = 1_us}, {{one, Access::kRead, evidence}, {two, Access::kWrite, evidence}})[1];
    build.run({.duration = 1_us}, {{one, Access::kRead, evidence}, {two, Access::kRead, evidence}});
    return build.finish();
  }

  /// a is dropped after op1, and recomputed before op2.
  PlanFile recomputing() const {
    PlanWriter writer{trace};
    writer.alloc(a, 0_B).run(OpId{0}).alloc(b, 512_B).run(OpId{1}).drop(a).alloc(a, 0_B).run(OpId{0}).run(OpId{2});
    return {trace.hash(), {}, {}, writer.plan()};
  }
};

}  // namespace

TEST_CASE("a live program has only the actions that the framework does not do by itself") {
  const ThreeOps step;
  const auto json = nlohmann::json::parse(live_program(step.trace, step.recomputing(), "run.plan"));
  CHECK(json["actions"] == nlohmann::json::parse(R"([[2,"drop",0],[2,"run",0]])"));
  CHECK(json["ops"][0] == nlohmann::json::parse(R"({"name":"","uses":[[0,-1,0,"write"]],"recipe":true})"));
  CHECK_FALSE(json["ops"][1].contains("recipe"));
}

TEST_CASE("in a live program, what a plan drops behind an op as an action of this op is dropped before the next op") {
  const ThreeOps step;
  PlanFile file = step.recomputing();
  for (Action& action : file.plan.actions)
    if (action.verb == Verb::kDrop) action.before = OpId{1};
  const auto json = nlohmann::json::parse(live_program(step.trace, file, "run.plan"));
  CHECK(json["actions"] == nlohmann::json::parse(R"([[2,"drop",0],[2,"run",0]])"));
}

TEST_CASE("a live program leaves out memory that no operator names, such as the workspace of a library") {
  // The workspace is allocated for one operator; the library allocated the other memory before the step.
  TraceBuilder build;
  const BufferId library = build.existing({.size = 512_B});
  const BufferId made = build.alloc({.size = 512_B});
  const BufferId workspace = build.alloc({.size = 512_B, .kind = BufferKind::kWorkspace});
  build.run({.duration = 1_us}, {{made, Access::kWrite, Evidence::kSchema},
                                 {workspace, Access::kWrite, Evidence::kInferred},
                                 {library, Access::kWrite, Evidence::kInferred}});
  build.free(workspace);
  const Trace trace = build.finish();
  PlanWriter writer{trace};
  writer.alloc(trace.first_version(library), 1024_B).alloc(trace.first_version(made), 0_B);
  writer.alloc(trace.first_version(workspace), 512_B).run(OpId{0});
  const auto json = nlohmann::json::parse(live_program(trace, {trace.hash(), {}, {}, writer.plan()}, "run.plan"));
  REQUIRE(json["ops"][0]["uses"].size() == 1);
  CHECK(json["ops"][0]["uses"][0][0] == made.value());
  CHECK(json["hidden"] == nlohmann::json{library.value(), workspace.value()});
}

TEST_CASE("content whose first action is a swap-in begins on the host, unless an op of the step makes it") {
  // w exists before the step | op0 updates w | op1 reads w. op0 makes the new version of w in place: no new place.
  TraceBuilder build;
  const BufferId w = build.existing({.size = 512_B});
  const VersionId updated = build.run({.duration = 1_us}, {{w, Access::kReadWrite, Evidence::kSchema}})[0];
  build.run({.duration = 1_us}, {{w, Access::kRead, Evidence::kSchema}});
  const Trace trace = build.finish();
  const VersionId before = trace.first_version(w);
  const auto lowered = [&](const std::vector<Action>& actions) {
    const PlanFile file{trace.hash(), {}, {}, Plan{actions}};
    return nlohmann::json::parse(live_program(trace, file, "run.plan"));
  };
  const std::uint32_t old_w = before.value(), new_w = updated.value();
  CHECK(lowered({{Verb::kSwapIn, OpId{0}, old_w, 0_B}})["parked"] == nlohmann::json{old_w});
  const auto json = lowered({{Verb::kSwapOut, OpId{1}, new_w, 0_B},
                             {Verb::kDrop, OpId{1}, new_w, 0_B},
                             {Verb::kSwapIn, OpId{1}, new_w, 0_B}});
  CHECK(json["parked"].empty());
  CHECK(json["actions"].size() == 3);
}

TEST_CASE("a live program refuses actions that a live job cannot execute, with the op and the reason") {
  const auto refusal = [](const ThreeOps& step, const PlanFile& file) {
    try {
      live_program(step.trace, file, "run.plan");
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  const ThreeOps source{.first = OpKind::kSource}, guessed{.evidence = Evidence::kParameter}, plain;
  CHECK(refusal(source, source.recomputing()) ==
        "run.plan: runs op 0 () again, which brings bytes from outside; expected a plan without it");
  CHECK(refusal(guessed, guessed.recomputing()) ==
        "run.plan: the trace does not say what op 0 () reads and writes; expected a trace recorded by tidepool_torch");
  PlanFile file = plain.recomputing();
  file.plan.actions.insert(file.plan.actions.end(),
                           {{Verb::kNext, OpId{}, 1, {}, {}}, {Verb::kNext, OpId{}, 2, {}, {}}});
  CHECK(refusal(plain, file) ==
        "run.plan: runs the step 3 times; expected a plan for one iteration, as simulate --first --plan-out writes it");
  file = plain.recomputing();
  file.spec.assume = Assumptions::find("simrd");
  file.spec.assume.copy_on_write = true;
  CHECK(refusal(plain, file) ==
        "run.plan: assumes that writes in place are copies (--assume simrd); expected a plan of the strict model");
}

TEST_CASE("a command's exit status, and the signal that ended it, are passed on") {
  CHECK(run_child({"sh", "-c", "exit 7"}) == 7);
  CHECK(run_child({"sh", "-c", "kill -9 $$"}) == 128 + 9);
  CHECK(run_child({"sh", "-c", "test \"$TIDEPOOL_TEST\" = yes"}, {.environment = {{"TIDEPOOL_TEST", "yes"}}}) == 0);
  CHECK_THROWS_WITH(run_child({"./no-such-command"}), "./no-such-command: cannot be run: No such file or directory");
  // A name with '=' is no variable, and a command does not run without the variables that it shall get.
  CHECK_THROWS_WITH(run_child({"true"}, {.environment = {{"A=B", "yes"}}}), "true: cannot be run: Invalid argument");
}

TEST_CASE("a signal to this process goes to the command, and this process waits for the command's end") {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGIO, SIGRTMIN, SIGRTMAX}) {
    DYNAMIC_SECTION("signal " << signal) {
      const auto before = std::signal(signal, SIG_DFL);  // a shell does not trap a signal that is ignored
      CHECK(run_child({"sh", "-c",
                       fmt::format("trap 'saved=1' {0}; kill -{0} $PPID; while [ -z \"$saved\" ]; do sleep "
                                   "0.01; done; exit 9",
                                   signal)}) == 9);
      std::signal(signal, before);
    }
  }
}

}  // namespace tidepool::live_program_test
