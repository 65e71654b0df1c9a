// FlashNeuron's linear tensor selection in closed form.
#include <algorithm>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::flashneuron_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

/// A parameter (50 B). Forward: ops 0, 1 and 2 make a, b and c; op 3 makes and frees p. Backward: op 4 reads c, which
/// is then freed; ops 5 and 6 read nothing; op 7 reads b; op 8 reads a. Each of a, b, c and p has 100 B. No op uses
/// more than 100 B besides the parameter.
Trace three_tensors() {
  TraceBuilder build;
  const BufferId parameter = build.existing({.size = 50_B});
  std::vector<BufferId> made;
  for (int i = 0; i < 4; ++i) {
    made.push_back(build.alloc({.size = 100_B}));
    build.run({.phase = Phase::kForward, .duration = 1000_ns},
              {{parameter, Access::kRead}, {made.back(), Access::kWrite}});
  }
  build.free(made[3]);
  const auto backward = [&](const std::vector<TraceBuilder::Touch>& touches) {
    build.run({.phase = Phase::kBackward, .duration = 1000_ns}, touches);
  };
  backward({{made[2], Access::kRead}});
  build.free(made[2]);
  backward({});
  backward({});
  backward({{made[1], Access::kRead}});
  build.free(made[1]);
  backward({{made[0], Access::kRead}});
  build.free(made[0]);
  return build.finish();
}

struct Copy {
  Verb verb;
  std::size_t before;
  VersionId version;
  bool operator==(const Copy&) const = default;
};

std::vector<Copy> copies(const Trace& trace, Bytes capacity) {
  const RunSpec spec{.pool = "ideal", .policy = "flashneuron", .capacity = capacity, .machine = kMachine};
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  CHECK(result.totals.makespan == result.baseline);
  std::vector<Copy> found;
  for (const Action& action : result.realised.actions)
    if (action.verb == Verb::kSwapOut || action.verb == Verb::kSwapIn)
      found.push_back({action.verb, action.before.index(), VersionId{action.subject}});
  return found;
}

}  // namespace

TEST_CASE("FlashNeuron offloads tensors in their order of appearance until the others fit") {
  // The peak is 450 B. Beside the parameter and the 100 B that an op uses, 201 or 200 B are left. What stays must be
  // less than that; b and c have 200 B.
  const Trace trace = three_tensors();
  const VersionId a = trace.made(OpId{0})[0], b = trace.made(OpId{1})[0];
  CHECK(copies(trace, 450_B).empty());
  // a is swapped in when 100 B are free for it. They are not free beside b and c; c is resident until op 5 begins.
  CHECK(copies(trace, 351_B) == std::vector<Copy>{{Verb::kSwapOut, 1, a}, {Verb::kSwapIn, 6, a}});
  // Both are swapped in. b is read first, so it comes first, while c is still resident.
  CHECK(
      copies(trace, 350_B) ==
      std::vector<Copy>{{Verb::kSwapOut, 1, a}, {Verb::kSwapOut, 2, b}, {Verb::kSwapIn, 5, b}, {Verb::kSwapIn, 6, a}});
}

TEST_CASE("with wait, FlashNeuron's backward phase begins when all swap-outs have ended") {
  // The swap-outs of a and b take 1600 ns each and begin at 1000 ns: b has left at 4200 ns. p takes the place of a at
  // 3000 ns. Op 4 could begin at 4000 ns: it does not need the place of b.
  Machine machine = kMachine;
  machine.d2h.rate = BytesPerSecond{62'500'000};
  for (const auto& [policy, waited] : {std::pair{"flashneuron", 0_ns}, std::pair{"flashneuron(wait=on)", 200_ns}}) {
    const RunSpec spec{.pool = "ideal", .policy = policy, .capacity = 350_B, .machine = machine};
    const Result result = simulate(three_tensors(), spec);
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.swap_out == 200_B);
    CHECK(result.totals.makespan == result.baseline + waited);
  }
}

}  // namespace tidepool::flashneuron_test
