// Powers of a layer's matrix against carrying out its copies.
#include "simulator/structure/max_plus.hpp"

#include <algorithm>

#include "simulator/registry.hpp"
#include "simulator/structure/fast_forward.hpp"
#include "tests/catch.hpp"
#include "tests/random_trace.hpp"
#include "traces/synthetic/gpt.hpp"

using namespace tidepool;

namespace {

MaxPlusMatrix random_matrix(tests::Random& random, std::size_t size) {
  MaxPlusMatrix matrix{size};
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j)
      if (random.chance(60)) matrix.at(i, j) = Nanos{static_cast<std::int64_t>(random.below(50))};
  return matrix;
}

}  // namespace

TEST_CASE("a power of a matrix is the matrix that often") {
  tests::Random random{7};
  for (const std::size_t size : {1u, 3u, 6u}) {
    const MaxPlusMatrix matrix = random_matrix(random, size);
    std::vector<Nanos> start;
    for (std::size_t i = 0; i < size; ++i) start.emplace_back(static_cast<std::int64_t>(random.below(100)));
    std::vector<Nanos> step = start;
    for (std::int64_t exponent = 0; exponent < 40; ++exponent) {
      CHECK(matrix.power(exponent) * start == step);
      step = matrix * step;
    }
  }
}

TEST_CASE("the greatest mean of a cycle is what a long row takes for each") {
  MaxPlusMatrix two{3};  // 0 -> 1 -> 0 in 3 + 4, 2 -> 2 in 3; from 2 to 0 in 100, which is no cycle
  two.at(1, 0) = 3_ns, two.at(0, 1) = 4_ns, two.at(2, 2) = 3_ns, two.at(0, 2) = 100_ns;
  const auto mean = two.greatest_cycle_mean();
  REQUIRE(mean);
  CHECK(mean->time.count() * 2 == 7 * mean->copies);
  CHECK_FALSE(MaxPlusMatrix{4}.greatest_cycle_mean());

  tests::Random random{8};
  for (int round = 0; round < 20; ++round) {
    const MaxPlusMatrix matrix = random_matrix(random, 5);
    const auto found = matrix.greatest_cycle_mean();
    const std::vector<Nanos> start(5);
    const auto most = [&](std::int64_t exponent) {
      const std::vector<Nanos> times = matrix.power(exponent) * start;
      return *std::max_element(times.begin(), times.end());
    };
    if (!found) continue;
    // Cycles have 1 to 5 edges: over 60 copies every one of them closes.
    CHECK((most(6'060) - most(6'000)).count() * found->copies == found->time.count() * 60);
  }
}

TEST_CASE("a power of a layer's matrix is as many layers") {
  const Trace trace =
      gpt_step({.layers = 40, .hidden = 256, .heads = 4, .sequence = 256, .vocabulary = 1'000, .batch = 8});
  RunSpec spec{.pool = "ideal", .machine = find_machine("v100-pcie3")};
  const std::optional<LaneProgram> program = LaneProgram::compile(trace, spec, simulate(trace, spec, true).realised);
  REQUIRE(program);
  const FoldedProgram folded{*program};
  std::size_t compared = 0;
  for (const Repeat& repeat : folded.repeats()) {
    if (repeat.copies < 30) continue;
    std::vector<Nanos> registers(program->registers());
    program->run(registers, 0, repeat.first);
    const LayerMatrix layer = layer_matrix(*program, repeat);
    std::vector<Nanos> state;
    for (const LaneProgram::Register one : layer.first) state.push_back(registers[one]);
    for (const std::int64_t copies : {1, 2, 7, 28}) {
      std::vector<Nanos> plain = registers;
      program->run(plain, repeat.first, repeat.first + static_cast<std::size_t>(copies) * repeat.period);
      const std::vector<Nanos> jumped = layer.matrix.power(copies) * state;
      CHECK(jumped[0] == plain[0]);  // the stream, and with it the time of the run
      compared += jumped[0] > state[0] ? 1 : 0;
    }
  }
  CHECK(compared >= 8);
}

TEST_CASE("layers that wait for the link take its time each, by the matrix as by the run") {
  // Every layer reads 12 MB from the host, 1.01 ms, while the one before it computes 0.1 ms.
  constexpr std::uint32_t kLayers = 50;
  TraceBuilder build;
  for (std::uint32_t i = 0; i < kLayers; ++i) build.existing({.size = Bytes{12'000'000}});
  for (std::uint32_t i = 0; i < kLayers; ++i) build.run({.duration = 100_us}, {{BufferId{i}}});
  const Trace trace = build.finish();
  RunSpec spec{.pool = "ideal", .machine = find_machine("v100-pcie3")};
  spec.machine.submit = Nanos{};
  Plan plan;
  const auto weight = [&](std::uint32_t i) { return trace.first_version(BufferId{i}).value(); };
  const auto fetch = [&](std::uint32_t i, std::uint32_t before) {
    plan.actions.push_back({Verb::kSwapIn, OpId{before}, weight(i), kNoAddress, 12_MiB});
  };
  fetch(0, 0);
  for (std::uint32_t i = 0; i < kLayers; ++i) {
    if (i + 1 < kLayers) fetch(i + 1, i);
    plan.actions.push_back({Verb::kRun, OpId{i}, i, {}, {}});
    plan.actions.push_back({Verb::kDrop, OpId{i}, weight(i), {}, {}});
  }
  const std::optional<LaneProgram> program = LaneProgram::compile(trace, spec, plan);
  REQUIRE(program);
  const Repeat layers{1, 3, kLayers - 1, Repeat::kNone};
  std::vector<Nanos> registers(program->registers());
  program->run(registers, 0, 1);
  const LayerMatrix layer = layer_matrix(*program, layers);
  std::vector<Nanos> state;
  for (const LaneProgram::Register one : layer.first) state.push_back(registers[one]);
  std::vector<Nanos> plain = registers;
  program->run(plain, 1, 1 + 3 * 48);
  CHECK((layer.matrix.power(48) * state)[0] == plain[0]);
  CHECK(plain[0] == 1'010_us * 48 + 100_us);
  const auto mean = layer.matrix.greatest_cycle_mean();
  REQUIRE(mean);
  CHECK(mean->time == 1'010_us * mean->copies);
}
