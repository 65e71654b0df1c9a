#include "simulator/studies/diff/plan_diff.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "tests/random_trace.hpp"
#include "traces/builder.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace tidepool::plan_diff_test {

using namespace tidepool::literals;
using Json = nlohmann::json;

namespace {

Trace step() {
  TraceBuilder build;
  build.free(build.alloc({.size = 4_MiB}));
  return build.finish();
}

Action of(Verb verb, std::uint32_t subject = 0) {
  return {.verb = verb, .before = {}, .subject = subject, .offset = {}, .size = {}};
}

/// What a plan does with the tensor, between its allocation and its end.
Plan plan(const std::vector<Action>& between, int cycle = 1) {
  Plan made{.actions = {of(Verb::kAlloc)}, .cycle = cycle};
  made.actions.insert(made.actions.end(), between.begin(), between.end());
  made.actions.push_back(of(Verb::kFree));
  return made;
}

Fate fate(const Plan& of_b) {
  const PlanDiff diff = diff_plans(plan({}), of_b, step());
  if (diff.tensors.empty()) return Fate::kKept;
  REQUIRE(diff.tensors.size() == 1);
  CHECK((diff.tensors[0].version == 0 && diff.tensors[0].bytes == 4_MiB && diff.tensors[0].a == Fate::kKept));
  return diff.tensors[0].b;
}

}  // namespace

TEST_CASE("a tensor of a plan is kept, swapped or recomputed") {
  const Action out = of(Verb::kSwapOut), in = of(Verb::kSwapIn), drop = of(Verb::kDrop), place = of(Verb::kAlloc);
  CHECK(fate(plan({})) == Fate::kKept);
  CHECK(fate(plan({out, drop, in})) == Fate::kSwapped);
  CHECK(fate(plan({drop, place})) == Fate::kRecomputed);
  CHECK(fate(plan({out, drop, place})) == Fate::kRecomputed);  // it has a copy, and is made again nevertheless
  CHECK(fate(plan({drop})) == Fate::kRecomputed);              // made again in the place of the version before it
  CHECK(fate(plan({out, drop, in, drop, place})) == Fate::kBoth);
  CHECK(fate(plan({out})) == Fate::kKept);  // a copy that is not used
}

TEST_CASE("what a plan does before its last cycle does not count") {
  const Action next = of(Verb::kNext, 1);
  Plan settled = plan({of(Verb::kDrop), of(Verb::kAlloc), of(Verb::kFree), next, of(Verb::kAlloc)});
  CHECK(fate(settled) == Fate::kKept);
  settled.cycle = 2;
  CHECK(fate(settled) == Fate::kRecomputed);
}

TEST_CASE("the first decision that differs is a drop, a copy, a wait or a rerun, with its iteration") {
  const Action out = of(Verb::kSwapOut), in = of(Verb::kSwapIn), drop = of(Verb::kDrop), place = of(Verb::kAlloc);
  const auto first = [](const Plan& a, const Plan& b) { return diff_plans(a, b, step()).first; };
  CHECK(!first(plan({drop, place}), plan({drop, place})));
  CHECK(!first(plan({}), plan({place})));  // a place is no decision
  const auto other = first(plan({drop, place}), plan({out, drop, in}));
  REQUIRE(other);
  CHECK((other->iteration == 1 && other->a->verb == Verb::kDrop && other->b->verb == Verb::kSwapOut));
  const auto more = first(plan({drop, of(Verb::kNext, 1)}), plan({drop, of(Verb::kNext, 1), drop}));
  REQUIRE(more);
  CHECK((more->iteration == 2 && !more->a && more->b->verb == Verb::kDrop));
}

TEST_CASE("diff says what two plans do with tensors") {
  const ScratchFolder scratch;
  const std::string step = fmt::format("{}/traces/samples/resnet50.tide", paths::source_folder()),
                    a = scratch.file("a.plan"), b = scratch.file("b.plan");
  for (const auto& [policy, path] : {std::pair{"dtr-eq", a}, {"lru-swap", b}})
    REQUIRE(run_program({"simulate", step, "--policy", policy, "--capacity", "0.6x", "--plan-out", path}).code == 0);
  const ProgramResult text = run_program({"diff", a, b, "--trace", step});
  CHECK(text.code == 1);
  INFO(text.out);
  const Json json = Json::parse(run_program({"diff", a, b, "--trace", step, "--json"}).out);
  CHECK(text.out.starts_with(json.at("sentence").get<std::string>() + "\n"));
  CHECK(text.out.find("\nrecomputed in " + a + ", swapped in " + b + ": ") != std::string::npos);
  CHECK(text.out.find("  buffer ") != std::string::npos);
  const std::string first = json.at("first_decision").at("sentence");
  CHECK(text.out.find("\n" + first + "\n") != std::string::npos);
  CHECK(first.starts_with("first decision that differs: before op "));
  CHECK(first.find(", " + a + " drops buffer ") != std::string::npos);
  CHECK(first.find("; " + b + " copies buffer ") != std::string::npos);
  CHECK(first.ends_with(" to the host"));
  CHECK(json.at("first_decision").at("a").at("verb") == "drop");
  CHECK(text.out.find(" stalled\n") != std::string::npos);
  CHECK(json.at("plan_b").at("stall_ns").get<std::int64_t>() > 0);
  std::int64_t tensors = 0, bytes = 0;
  for (const Json& group : json.at("groups")) {
    tensors += group.at("tensors").get<std::int64_t>();
    bytes += group.at("bytes").get<std::int64_t>();
  }
  CHECK(tensors == static_cast<std::int64_t>(json.at("tensors").size()));
  for (const Json& each : json.at("tensors")) bytes -= each.at("bytes").get<std::int64_t>();
  CHECK(bytes == 0);
  const ProgramResult same = run_program({"diff", a, a, "--trace", step});
  CHECK(same.code == 0);
  CHECK(same.out.starts_with("no difference: "));
}

TEST_CASE("two plans are compared with the trace that they are for") {
  const ScratchFolder scratch;
  const std::string step = scratch.file("step.jsonl"), other = scratch.file("other.jsonl"), a = scratch.file("a.plan");
  std::ofstream{step} << to_jsonl(tests::random_trace(1, 60));
  std::ofstream{other} << to_jsonl(tests::random_trace(2, 60));
  REQUIRE(run_program({"simulate", step, "--plan-out", a}).code == 0);
  CHECK(run_program({"diff", a, a}).err ==
        "tidepool: " + a + " and " + a + " are plans; expected --trace with the trace that they are for\n");
  const ProgramResult refused = run_program({"diff", a, a, "--trace", other});
  CHECK(refused.code == 2);
  CHECK(refused.err.starts_with("tidepool: " + a + ":1: made for trace "));
  CHECK(run_program({"diff", a, a, "--trace", step, "--max-growth", "1%"}).code == 2);
  CHECK(run_program({"diff", step, step, "--trace", step}).code == 2);
}

}  // namespace tidepool::plan_diff_test
