// Steps of four or five ops whose optimum is known from trying all plans. In each, an op that runs again updates a
// buffer in place and makes another output, with no byte to spare.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::tiny_steps_test {

using tests::kOptimised;

namespace {

/// The host has no memory for copies, so dropped content must be recomputed.
Machine without_host_memory() {
  Machine machine = tests::byte_per_nano();
  machine.host.capacity = 0_B;
  return machine;
}

/// A run that ended well.
struct Ended {
  std::string run;  ///< policy and pool
  Nanos makespan;
};

/// Runs every policy that recomputes, on ideal and best-fit, with an overhead limit and (in optimised builds) without.
/// No run may end with an error. A run that ends well must replay and move the right bytes.
std::vector<Ended> runs_that_end_well(const Trace& trace, Bytes capacity) {
  std::vector<Ended> ended;
  for (const std::string pool : {"ideal", "best-fit"})
    for (const PolicyInfo* policy : all_policies()) {
      if (policy->kind != PolicyKind::kRemat && policy->kind != PolicyKind::kHybrid) continue;
      std::vector<std::string> specs{policy->name};
      if (policy->name == "tide") specs.push_back("tide(with=remat)");
      for (const std::string& text : specs)
        for (const std::optional<double> limit : {std::optional{10.0}, std::optional<double>{}}) {
          if (!limit && !kOptimised) continue;  // a run that thrashes gives up after a million reruns
          const RunSpec spec{.pool = pool,
                             .policy = text,
                             .capacity = capacity,
                             .machine = without_host_memory(),
                             .overhead_limit = limit};
          INFO(fmt::format("{} on {}", text, pool));
          const Result result = simulate(trace, spec, true);
          INFO(result.message);
          CHECK(result.outcome != Outcome::kError);
          CHECK(result.totals.recompute_count < 100);
          if (result.outcome != Outcome::kOk) continue;
          CHECK(replay(trace, spec, result.realised) == result.totals);
          const HostReport report = execute_on_host(trace, result.realised, {.threads = false});
          INFO(report.message);
          CHECK(report.outcome == HostOutcome::kOk);
          CHECK(report.corrupt == Bytes{});
          ended.push_back({fmt::format("{} on {}", text, pool), result.totals.makespan});
        }
    }
  return ended;
}

Nanos best_of(const std::vector<Ended>& ended) {
  Nanos best = 1'000'000_ms;
  for (const Ended& each : ended) best = std::min(best, each.makespan);
  return best;
}

}  // namespace

TEST_CASE("no policy finds a plan for a step that has none") {
  // op0 writes a | op1 updates a, writes b | op2 updates a, writes c | op3 reads b, updates a. a and c take 2 MiB, b 4.
  // op3 needs b and a2, the content of a after op2. While op2 runs, b does not fit beside a and c. After op2, only op1
  // can make b again. It needs 6 MiB for a1 and b, so a2 must be dropped. To make a2 again, op2 needs c, too.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 2_MiB});
  build.run({.duration = 1_ms}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 4_MiB});
  build.run({.duration = 3_ms}, {{a, Access::kReadWrite}, {b, Access::kWrite}});
  const BufferId c = build.alloc({.size = 2_MiB});
  build.run({.duration = 1_ms}, {{a, Access::kReadWrite}, {c, Access::kWrite}});
  build.free(c);
  build.run({.duration = 3_ms}, {{b}, {a, Access::kReadWrite}});
  build.free(a), build.free(b);
  const Trace trace = build.finish();
  for (const Ended& each : runs_that_end_well(trace, 6_MiB)) FAIL_CHECK(each.run);
  CHECK_FALSE(runs_that_end_well(trace, 8_MiB).empty());
}

TEST_CASE("no policy is below the optimum of a step that must make one of its outputs three times") {
  // op0 writes a | op1 updates a, writes b | op2 writes c | op3 reads b, updates a | op4 reads a, updates c. A buffer
  // takes 4 of 8 MiB; b is an output. For op2, a or b is dropped. op0 and op1 make it again for op3, and c is dropped
  // for them. For op4, op2 makes c again, and b is dropped. At the end, op0 and op1 make b again:
  // 3 + 2 + 1 + (3 + 2) + 1 + 1 + 3 + (3 + 2) = 21 ms.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 4_MiB});
  build.run({.duration = 3_ms}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 4_MiB});
  build.run({.duration = 2_ms}, {{a, Access::kReadWrite}, {b, Access::kWrite}});
  const BufferId c = build.alloc({.size = 4_MiB});
  build.run({.duration = 1_ms}, {{c, Access::kWrite}});
  build.run({.duration = 1_ms}, {{b}, {a, Access::kReadWrite}});
  build.run({.duration = 3_ms}, {{a}, {c, Access::kReadWrite}});
  build.free(a), build.free(c);
  const std::vector<Ended> ended = runs_that_end_well(build.finish(), 8_MiB);
  for (const Ended& each : ended)
    if (each.makespan < 21_ms) FAIL_CHECK(each.run << ": " << to_text(each.makespan));
  CHECK(best_of(ended) == 21_ms);
}

TEST_CASE("no policy is below the optimum of a step whose first two ops run twice") {
  // op0 writes a | op1 updates a, writes b | op2 writes c, which is freed | op3 reads a and b. Each buffer takes 2 of 4
  // MiB. For op2, a or b is dropped. op0 and op1 make it again, with all memory: 1 + 1 + 1 + (1 + 1) + 1 = 6 ms.
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 2_MiB});
  build.run({.duration = 1_ms}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 2_MiB});
  build.run({.duration = 1_ms}, {{a, Access::kReadWrite}, {b, Access::kWrite}});
  const BufferId c = build.alloc({.size = 2_MiB});
  build.run({.duration = 1_ms}, {{c, Access::kWrite}});
  build.free(c);
  build.run({.duration = 1_ms}, {{a}, {b}});
  build.free(a), build.free(b);
  const std::vector<Ended> ended = runs_that_end_well(build.finish(), 4_MiB);
  for (const Ended& each : ended)
    if (each.makespan < 6_ms) FAIL_CHECK(each.run << ": " << to_text(each.makespan));
  CHECK(best_of(ended) == 6_ms);
}

}  // namespace tidepool::tiny_steps_test
