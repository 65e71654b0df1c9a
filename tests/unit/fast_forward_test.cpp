// Plans as max-plus programs, and layers that are recalled instead of carried out: the same times as the timeline's.
#include "simulator/structure/fast_forward.hpp"

#include "simulator/registry.hpp"
#include "tests/catch.hpp"
#include "tests/chain_trace.hpp"
#include "tests/random_trace.hpp"
#include "traces/importer.hpp"
#include "traces/synthetic/gpt.hpp"
#include "traces/synthetic/resnet.hpp"

using namespace tidepool;

namespace {

struct Compared {
  FoldedProgram::Run folded;
  std::size_t actions = 0;
};

/// Simulates, and checks that the program and the folded program of the realised plan end when the run does.
Compared compare(const Trace& trace, const std::string& policy, double fraction, const std::string& machine) {
  RunSpec spec{.pool = "ideal", .policy = policy, .machine = find_machine(machine)};
  spec.capacity = Bytes{static_cast<std::int64_t>(static_cast<double>(trace.ideal_peak().count()) * fraction)};
  const Result result = simulate(trace, spec, true);
  INFO(policy << " at " << fraction << " on " << machine << ": " << result.message);
  if (result.outcome != Outcome::kOk) return {};
  const std::optional<LaneProgram> program = LaneProgram::compile(trace, spec, result.realised);
  REQUIRE(program);
  std::vector<Nanos> registers(program->registers());
  program->run(registers, 0, program->actions());
  CHECK(program->end(registers) == result.totals.makespan);
  const Compared compared{FoldedProgram{*program}.run(), program->actions()};
  CHECK(compared.folded.end == result.totals.makespan);
  CHECK(compared.folded.carried_out + compared.folded.recalled == compared.actions);
  return compared;
}

Trace gpt(std::int64_t layers, std::int64_t micro_batches = 1) {
  return gpt_step({.layers = layers,
                   .hidden = 256,
                   .heads = 4,
                   .sequence = 256,
                   .vocabulary = 1'000,
                   .batch = 8,
                   .micro_batches = micro_batches});
}

}  // namespace

TEST_CASE("folded plans of repeated steps take the same time to the nanosecond") {
  const std::vector<Trace> traces{gpt(12), gpt(6, 4), resnet_step({.layers = 50, .batch = 16}), tests::chain_trace(40)};
  std::size_t recalled = 0, ended = 0;
  for (const Trace& trace : traces)
    for (const char* const policy : {"none", "tide-fold(effort=30)", "lru-swap", "dtr-eq", "autoswap", "sqrt-n"})
      for (const double fraction : {0.5, 0.7, 0.9, 1.1})
        for (const char* const machine : {"v100-pcie3", "titan-x-pcie3"}) {
          const Compared compared = compare(trace, policy, fraction, machine);
          recalled += compared.folded.recalled;
          ended += compared.actions > 0 ? 1 : 0;
        }
  CHECK(ended > 80);
  CHECK(recalled > 20'000);
}

TEST_CASE("plans of random steps on several streams take the same time as programs") {
  std::size_t ended = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Trace trace = tests::random_trace(seed, 250);
    for (const char* const policy : {"none", "lru-swap", "autoswap+lru-swap", "dtr-eq", "random"})
      for (const double fraction : {0.6, 0.8, 1.1}) {
        INFO("seed " << seed);
        ended += compare(trace, policy, fraction, "v100-pcie3").actions > 0 ? 1 : 0;
      }
  }
  CHECK(ended > 60);
}

TEST_CASE("of equal layers without a plan all but two are recalled, however many there are") {
  const Compared few = compare(gpt(12), "none", 1.1, "v100-pcie3"), many = compare(gpt(96), "none", 1.1, "v100-pcie3");
  CHECK(many.folded.carried_out < few.folded.carried_out + 200);
  CHECK(many.folded.recalled > 8 * many.folded.carried_out);
}

TEST_CASE("a layer that waits for its copies is recalled when it waits as long as the one before") {
  // Every layer reads 12 MB from the host, 1.01 ms, and computes 0.1 ms on them: the link is what it waits for.
  TraceBuilder build;
  std::vector<BufferId> weights;
  for (int i = 0; i < 50; ++i) weights.push_back(build.existing({.size = Bytes{12'000'000}}));
  for (int i = 0; i < 50; ++i) build.run({.duration = 100_us}, {{weights[static_cast<std::size_t>(i)]}});
  const Trace trace = build.finish();
  const RunSpec spec{.pool = "ideal", .machine = find_machine("v100-pcie3")};
  Plan plan;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const std::uint32_t weight = trace.first_version(BufferId{i}).value();
    plan.actions.push_back({Verb::kSwapIn, OpId{i}, weight, kNoAddress, 12_MiB});
    plan.actions.push_back({Verb::kRun, OpId{i}, i, {}, {}});
    plan.actions.push_back({Verb::kDrop, OpId{i}, weight, {}, {}});
  }
  const std::optional<LaneProgram> program = LaneProgram::compile(trace, spec, plan);
  REQUIRE(program);
  const FoldedProgram::Run run = FoldedProgram{*program}.run();
  // Each is issued when the op before it has ended: 6 us to submit it are past by then but for the first.
  CHECK(run.end == 6_us + (1'010_us + 100_us) * 50);
  CHECK(run.recalled >= 47 * 3);
}

TEST_CASE("what has addresses, directions that disturb each other, or storage, is no program") {
  const Trace trace = tests::chain_trace(5);
  RunSpec spec{.pool = "best-fit", .machine = find_machine("v100-pcie3")};
  CHECK_FALSE(LaneProgram::compile(trace, spec, simulate(trace, spec, true).realised));
  spec.pool = "ideal";
  const Plan plan = simulate(trace, spec, true).realised;
  CHECK(LaneProgram::compile(trace, spec, plan));
  spec.machine.storage.capacity = 1_GiB;
  CHECK_FALSE(LaneProgram::compile(trace, spec, plan));
  spec.machine = find_machine("a100-pcie4");
  CHECK_FALSE(LaneProgram::compile(trace, spec, plan));
}
