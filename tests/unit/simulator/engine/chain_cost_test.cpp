#include "simulator/engine/chain_cost.hpp"

#include <cstdint>
#include <vector>

#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::chain_cost_test {

TEST_CASE("the cost of a chain is that of its absent versions, each once, and of copies of those on the host") {
  // a -> b -> c -> d, and d reads a too. Each op takes 10 ns.
  TraceBuilder build;
  std::vector<BufferId> x;
  for (int i = 0; i < 4; ++i) {
    x.push_back(build.alloc({.size = 1'000_B}));
    std::vector<TraceBuilder::Touch> touches;
    if (i > 0) touches.push_back({x[x.size() - 2], Access::kRead});
    if (i == 3) touches.push_back({x[0], Access::kRead});
    touches.push_back({x.back(), Access::kWrite});
    build.run({.duration = 10_ns}, touches);
  }
  const Trace trace = build.finish();
  RunSpec spec;
  spec.machine.h2d = {.rate = BytesPerSecond{1'000'000'000}, .latency = 500_ns};  // 1,500 ns for 1,000 B
  std::vector<VersionState> states(trace.versions().size());
  for (VersionState& state : states) state.filled = true, state.cost = 10_ns;
  const Nanos clock;
  const std::uint32_t op = 3;
  Changes changes;
  const View view{trace, spec, states, clock, op, changes};
  const auto version = [&](std::size_t i) {
    for (const Use& use : trace.uses(OpId{i}))
      if (use.out.valid()) return trace.root(use.out);
    return VersionId{};
  };
  const auto state = [&](std::size_t i) -> VersionState& { return states[version(i).index()]; };
  CHECK(chain_cost(view, version(3)) == 10_ns);
  state(2).filled = state(1).filled = false;
  CHECK(chain_cost(view, version(3)) == 30_ns);
  state(0).filled = false;
  CHECK(chain_cost(view, version(3)) == 40_ns);
  state(1).on_host = true;
  CHECK(chain_cost(view, version(3)) == 1'530_ns);
}

}  // namespace tidepool::chain_cost_test
