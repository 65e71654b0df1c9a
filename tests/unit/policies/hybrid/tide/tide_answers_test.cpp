// Properties of tide other than finding good plans: when and how often it plans.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "policies/planning/gaps/gap_draft.hpp"
#include "policies/planning/search/answering_planner.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/paths.hpp"
#include "tests/random_trace.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::tide_answers_test {

using tidepool::tests::optimised;

namespace {

Trace gpt2() { return load_trace(paths::source_folder() + "/traces/samples/gpt2.tide"); }

/// A run on best-fit and an A100, with `percent` % of the trace's peak.
RunSpec setting(const Trace& trace, int percent, std::string policy = "none") {
  RunSpec spec{
      .pool = "best-fit", .policy = std::move(policy), .capacity = trace.ideal_peak() * std::int64_t{percent} / 100};
  spec.machine = find_machine("a100-pcie4");
  return spec;
}

}  // namespace

TEST_CASE("a planner's answer gives the planner's run again, without another search") {
  const Trace trace = gpt2();
  const RunSpec spec = setting(trace, 60);
  for (const char* name : {"tide", "tide-remat"}) {
    INFO(name);
    const PolicyInfo& info = find_policy(name);
    std::unique_ptr<Policy> planner = info.make(Options{info.name, info.options, {{"effort", "2"}}, 1});
    const auto maker = dynamic_cast<const AnsweringPlanner&>(*planner).maker();
    CHECK_FALSE(*maker);
    const Result planned = judge(trace, spec, std::move(planner), true);
    REQUIRE(*maker);
    const Result again = judge(trace, spec, (*maker)(), true);
    CHECK(again.outcome == planned.outcome);
    CHECK(again.realised == planned.realised);
  }
}

TEST_CASE("only in a repeated step, content that begins on the host and is needed late leaves the device") {
  TraceBuilder build;
  const BufferId state = build.existing({.size = 8_MiB, .kind = BufferKind::kOptimizerState});
  const BufferId activation = build.alloc({.size = 8_MiB, .kind = BufferKind::kActivation});
  build.run({.duration = 5_ms}, {{activation, Access::kWrite}});
  build.run({.duration = 1_ms}, {{activation}});
  build.free(activation);
  for (int i = 0; i < 2; ++i) build.run({.duration = 5_ms}, {});
  build.run({.duration = 1_ms}, {{state, Access::kReadWrite}});
  build.run({.duration = 5_ms}, {});
  const Trace trace = build.finish();
  for (const auto& [iterations, out] : {std::pair{1, 0_B}, std::pair{3, 8_MiB}}) {
    INFO(iterations);
    RunSpec spec = setting(trace, 60, "tide");
    spec.iterations = iterations;
    const Result result = simulate(trace, spec);
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.totals.makespan == result.baseline);
    CHECK(result.totals.swap_in == 8_MiB);
    CHECK(result.totals.swap_out == out);
  }
}

TEST_CASE("with rivals=on, tide is no slower than any other policy on pools that plan offline") {
  if (!optimised()) return;
  const auto load = [](const char* name) {
    return load_trace(fmt::format("{}/traces/samples/{}.tide", paths::source_folder(), name));
  };
  const Trace bilstm = load("bilstm"), vgg16 = load("vgg16");
  for (const char* pool : {"one-pass", "tide-pool", "xla"})
    for (const auto& [trace, percent] : {std::pair{&bilstm, 50}, {&bilstm, 70}, {&bilstm, 90}, {&vgg16, 70}}) {
      RunSpec spec = setting(*trace, percent, "tide(effort=60,rivals=on)");
      spec.pool = pool;
      const Result ours = simulate(*trace, spec);
      REQUIRE(ours.outcome == Outcome::kOk);
      for (const PolicyInfo* other : all_policies()) {
        spec.policy = other->name;
        if (other->kind == PolicyKind::kNone || allowed_by(spec.policy).find("order") != std::string::npos ||
            other->name == "tide")
          continue;
        INFO(fmt::format("{} {} {} %", pool, other->name, percent));
        const Result result = simulate(*trace, spec);
        CHECK((result.outcome != Outcome::kOk || ours.totals.makespan <= result.totals.makespan));
      }
    }
}

TEST_CASE("on several streams tide is no slower than tide-remat") {
  int compared = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const Trace trace = tests::random_trace(seed, 20);
    if (trace.data().streams.size() == 1) continue;
    RunSpec spec = setting(trace, 70, "tide(effort=0,least=1B)");
    const Result ours = simulate(trace, spec);
    spec.policy = "tide-remat";
    const Result other = simulate(trace, spec);
    if (other.outcome != Outcome::kOk) continue;
    INFO(seed);
    CHECK(ours.outcome == Outcome::kOk);
    CHECK(ours.totals.makespan <= other.totals.makespan);
    ++compared;
  }
  CHECK(compared > 20);
}

}  // namespace tidepool::tide_answers_test
