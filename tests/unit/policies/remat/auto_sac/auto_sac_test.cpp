// Selective checkpointing by module, from a trace to a plan.
#include "policies/remat/auto_sac/module_program.hpp"
#include "policies/remat/auto_sac/module_stats.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/two_blocks.hpp"

namespace tidepool::auto_sac_test {

using tidepool::tests::TwoBlocks;

namespace {

struct Model {
  TwoBlocks blocks;
  std::vector<CalledModule> modules = called_modules(blocks.trace);
  ModelStats stats = model_stats(blocks.trace, modules);

  const ModuleStats& of(const std::string& path) const {
    for (const ModuleStats& module : stats.modules)
      if (module.path == path) return module;
    throw std::invalid_argument{path};
  }
};

}  // namespace

TEST_CASE("the modules of a step, what they save, and what their backward adds") {
  const Model model;
  CHECK(model.stats.parameters == 5_B);
  REQUIRE(model.stats.modules.size() == 9);
  CHECK(model.stats.modules[0].path.empty());
  CHECK(model.stats.modules[1].path == "block.0");
  CHECK(model.of("block.0.in").leaf);
  CHECK_FALSE(model.of("block.0").leaf);
  // h and a are saved, y is the output. When block.1 returns, h, a and y of both blocks are live.
  CHECK(model.of("block.0").saved == 160_B);
  CHECK(model.of("block.0").alive == 170_B);
  CHECK(model.of("block.1").saved == 160_B);
  CHECK(model.of("block.1").alive == 340_B);
  // The peak is where gh is made beside ga. The backward of block.0 begins with g (10 B) live, that of block.1 with
  // nothing.
  CHECK(model.of("block.1").temporary == 160_B);
  CHECK(model.of("block.0").temporary == 150_B);
  CHECK(model.of("block.1").gradients == 0_B);
  // Two outputs, each rounded up to 512 B. The last op's output is the region's output, so it does not count.
  CHECK(model.of("block.0").made == 1024_B);
  CHECK(model.of("block.0").runtime == 30_us);
  CHECK(model.of("block.0").returned == 3);
  CHECK(model.of("").returned == 8);
}

TEST_CASE(
    "modules give up as many bytes as the budget asks for, and a budget one byte below the least peak is refused") {
  const Model model;
  // The backward of block.1 begins with 340 B of activations and 5 B of parameters, and makes 160 B. block.0 makes 1024
  // B; 864 B of them are not saved even without checkpointing. Only drops beyond these lower the peak.
  CHECK(choose_modules(model.stats, 505_B, 1)->modules.empty());
  const std::optional<ModuleChoice> little = choose_modules(model.stats, 504_B, 1);
  REQUIRE(little);
  REQUIRE(little->modules.size() == 1);
  CHECK(little->modules[0].module == 1);
  CHECK(little->modules[0].given_up == Approx(865.0 / 1024));
  CHECK(little->peak == 504_B);
  const std::optional<ModuleChoice> all = choose_modules(model.stats, 345_B, 1);
  REQUIRE(all);
  CHECK(all->modules[0].given_up == Approx(1));
  CHECK(all->peak == 345_B);
  // Shares of bytes and of time: (0, 0), (1/2, 1/3), (1, 1). Each point takes the time of the next one and moves right
  // by 0.01. All bytes are the share 1: there, the line through (0.01, 1/3) with slope 4/3 is at 1.653. 1.653 times 30
  // us is 49.6 us.
  CHECK(all->recompute == Nanos{49'600});
  CHECK_FALSE(choose_modules(model.stats, 344_B, 1));
}

TEST_CASE("shards divide parameters and gradients, not activations") {
  ModelStats stats{.parameters = 1000_B, .modules = {}};
  stats.modules.push_back({.path = "", .alive = 100_B, .gradients = 400_B, .temporary = 10_B, .tradeoff = {}});
  CHECK(choose_modules(stats, 1510_B, 1)->peak == 1510_B);
  CHECK_FALSE(choose_modules(stats, 1509_B, 1));
  CHECK(choose_modules(stats, 460_B, 4)->peak == 460_B);
  CHECK_FALSE(choose_modules(stats, 459_B, 4));
}

TEST_CASE("an op in place is kept or dropped with the op whose output it updates, within its call") {
  TraceBuilder build;
  const BufferId parameter =
      build.existing({.size = 8_B, .name = build.text("m.weight"), .kind = BufferKind::kParameter});
  const BufferId running = build.existing({.size = 4_B, .name = build.text("m.mean"), .kind = BufferKind::kParameter});
  const BufferId x = build.alloc({.size = 600_B}), y = build.alloc({.size = 100_B});
  const auto op = [&](const char* module) {
    return Op{.name = build.text("op"), .module = build.text(module), .phase = Phase::kForward, .duration = 1_us};
  };
  build.run(op("m.a"), {{parameter}, {x, Access::kWrite}});
  build.run(op("m.b"), {{x, Access::kReadWrite}});
  build.run(op("m.b"), {{running, Access::kReadWrite}});
  build.run(op("m.c"), {{x}, {y, Access::kWrite}});
  const Trace trace = build.finish();
  const std::vector<CalledModule> modules = called_modules(trace);
  const auto region = [&](const std::string& path) {
    for (const CalledModule& module : modules)
      if (module.path == path) return region_of(trace, module.calls.front()).region;
    throw std::invalid_argument{path};
  };
  const SelectiveRegion whole = region("m");
  REQUIRE(whole.ops.size() == 4);
  CHECK(whole.keep_random);  // its only inputs are parameters
  CHECK(whole.ops[0].memory == 1024_B);
  CHECK_FALSE(whole.ops[0].updates);
  CHECK(whole.ops[1].memory == 1024_B);
  CHECK(whole.ops[1].updates == 0);
  CHECK(whole.ops[2].updates == 2);
  CHECK(whole.ops[3].memory == 0_B);
  CHECK(region("m.b").ops[0].updates == 0);  // the op that makes x is outside of the region
  CHECK_FALSE(region("m.c").keep_random);
}

TEST_CASE("auto-sac drops the tensors that its programs choose, and the step runs") {
  const TwoBlocks blocks;
  for (const char* policy : {"auto-sac", "auto-sac(choose=greedy)"}) {
    INFO(policy);
    const Result result = simulate(blocks.trace, {.pool = "ideal", .policy = policy, .capacity = 365_B, .machine = {}});
    REQUIRE(result.outcome == Outcome::kOk);
    CHECK(result.totals.recompute == 20_us);  // the ops of block.0 that make h and a; y stays
    CHECK(result.totals.peak == 285_B);       // ga (60) and gh (100) of block.1, its h, y of block.0, x and w
  }
  const RunSpec all{.pool = "ideal", .policy = "auto-sac", .capacity = 520_B, .machine = {}};
  CHECK(simulate(blocks.trace, all).totals.recompute == 0_ns);
}

}  // namespace tidepool::auto_sac_test
