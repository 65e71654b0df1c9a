#include "policies/hybrid/tide/best_answer.hpp"

#include <vector>

#include "simulator/machine.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "traces/builder.hpp"

namespace tidepool::best_answer_test {

TEST_CASE("a planner that only the overhead limit stops says so, not that memory is missing") {
  // Ops take no time: the first wait for a copy exceeds any overhead limit. The plans found lack memory before it.
  TraceBuilder build;
  std::vector<BufferId> made;
  const auto make = [&](Bytes size, const std::vector<std::size_t>& reads) {
    made.push_back(build.alloc({.size = size}));
    std::vector<TraceBuilder::Touch> touches{{made.back(), Access::kWrite}};
    for (const std::size_t i : reads) touches.push_back({made[i]});
    build.run({}, touches);
  };
  const auto free = [&](const std::vector<std::size_t>& done) {
    for (const std::size_t i : done) build.free(made[i]);
  };
  make(7_MiB, {});
  make(5_MiB, {0});
  make(6_MiB, {1});
  make(1_MiB, {2, 0});
  free({3});
  make(8_MiB, {1});
  free({1, 4});
  make(4_MiB, {0});
  free({0});
  make(3_MiB, {5, 2});
  free({2, 5, 6});
  const Trace trace = build.finish();
  for (const char* name : {"tide", "tide(with=swap)"}) {
    INFO(name);
    RunSpec spec{.pool = "ideal", .policy = name, .capacity = 15_MiB};
    spec.machine = find_machine("a100-pcie4");
    spec.overhead_limit.reset();
    CHECK(simulate(trace, spec).outcome == Outcome::kOk);
    spec.overhead_limit = 10;
    CHECK(simulate(trace, spec).outcome == Outcome::kTimeLimit);
  }
}

}  // namespace tidepool::best_answer_test
