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

using namespace tidepool;
using tests::kOptimised;

namespace {

/// The host has no memory for copies, so dropped content must be recomputed.
Machine without_host_memory() {
  Machine machine = tests::byte_per_nano();
  machine.host.capacity = 0_B;
  return machine;
}

/// Runs every policy that recomputes, on ideal and best-fit, with and without an overhead limit. Every run must end. A
/// run that ends well must replay, move the right bytes and be no faster than the optimum.
struct Ended {
  std::string run;
  Nanos makespan;
};
std::vector<Ended> runs_that_end_well(const Trace& trace, Bytes capacity) {
  std::vector<Ended> ended;
  for (const std::string pool : {"ideal", "best-fit"})
    for (const PolicyInfo* policy : all_policies()) {
      if (policy->kind != PolicyKind::kRemat && policy->kind != PolicyKind::kHybrid) continue;
      std::vector<std::string> specs{policy->name};
      if (policy->name == "tide") specs.push_back("tide(with=remat)");
      for (const std::string& text : specs)
        for (const std::optional<double> limit : {std::optional{10.0}, std::optional<double>{}}) {
          if (!limit && !kOptimised) continue;  // up to a million runs of ops before it gives up
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
  // op3 needs a2 and b. While op2 runs, b does not fit beside a and c. Behind op2, b comes from op1 alone, which needs
  // 6 MiB for a1 and b; that leaves no room for a2, and to make a2 again op2 needs c as well.
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

TEST_CASE("no policy is below the optimum of a step that hands on a version that it must make three times") {
  // op0 writes a | op1 updates a, writes b | op2 writes c | op3 reads b, updates a | op4 reads a, updates c. Each takes
  // 4 MiB, of 8; b is handed on. op2 evicts a or b, and either comes back by op0 and op1, for which c goes; op4 needs c
  // again, by op2, and that leaves no room for b, which comes back by op0 and op1 when the step is over:
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
  // op0 writes a | op1 updates a, writes b | op2 writes c, which ends | op3 reads a and b. Each takes 2 MiB, of 4. op2
  // evicts a or b. Either comes back by op0 and op1, which need all there is: 1 + 1 + 1 + (1 + 1) + 1 = 6 ms.
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
