// Invariants of every registered policy on steps of a few ops. One op may update in place and make further outputs. At
// the smallest capacities, such an op can only just run again.
#include <fmt/format.h>

#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "simulator/studies/sweep/grid.hpp"
#include "tests/catch.hpp"
#include "tests/effort.hpp"
#include "tests/machines.hpp"
#include "tests/quick_spec.hpp"
#include "tests/random_trace.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::small_steps_test {

using tidepool::tests::kOptimised;

namespace {

/// The most bytes that one op uses at once. With less memory, no plan exists.
Bytes largest_working_set(const Trace& trace) {
  Bytes most;
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    std::vector<BufferId> used;
    for (const Use& use : trace.uses(OpId{i})) used.push_back(trace.version(use.in.valid() ? use.in : use.out).buffer);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    Bytes size;
    for (const BufferId buffer : used) size += trace.buffer(buffer).size;
    most = std::max(most, size);
  }
  return most;
}

/// A run at a capacity from the needs of the largest op to those of the whole step.
RunSpec tight_spec(const Trace& trace, tests::Random& random) {
  RunSpec spec{.pool = random.chance(50) ? "ideal" : "best-fit", .machine = tests::uneven()};
  const Bytes least = largest_working_set(trace), most = std::max(least, trace.ideal_peak());
  spec.capacity = least + (most - least) / 512 * static_cast<std::int64_t>(random.below(5)) / 4 * 512;
  if (random.chance(30)) spec.machine.host.capacity = 512_B * static_cast<std::int64_t>(random.below(8));
  spec.iterations = random.chance(70) ? 1 : 2 + static_cast<int>(random.below(2));
  if (random.chance(30)) spec.overhead_limit.reset();
  return spec;
}

/// Whether some op that ran again updated a version in place and made another output too.
bool runs_a_mixed_op_again(const Trace& trace, const Plan& plan) {
  std::vector<bool> ran(trace.ops().size());
  for (const Action& action : plan.actions) {
    if (action.verb != Verb::kRun) continue;
    const std::span made = trace.made(OpId{action.subject});
    const auto in_place =
        std::count_if(made.begin(), made.end(), [&](VersionId v) { return trace.version(v).parent.valid(); });
    if (ran[action.subject] && in_place > 0 && in_place < std::ssize(made)) return true;
    ran[action.subject] = true;
  }
  return false;
}

}  // namespace

TEST_CASE("every ok run of a small step replays to its totals and moves the right bytes") {
  int ok = 0, mixed = 0, settled = 0;
  for (std::uint64_t seed = 1; seed <= (kOptimised ? 2'000 : 60); ++seed) {
    tests::Random random{seed};
    const Trace trace = tests::small_step(seed, 3 + static_cast<int>(random.below(8)));
    const RunSpec setting = tight_spec(trace, random);
    for (const PolicyInfo* policy : all_policies()) {
      // Each seed tries about a fifth of the policies, chosen at random. All seeds together try every policy on many
      // steps.
      if (random.below(5) != 0) continue;
      RunSpec spec = setting;
      spec.policy = tests::quick_spec(*policy);
      if (seed % 3 == 0) spec.steady = true, spec.iterations = kUsualIterations;
      INFO(fmt::format("seed {} pool {} policy {} capacity {} iterations {}{}", seed, spec.pool.text, spec.policy.text,
                       to_text(spec.capacity), spec.iterations, spec.steady ? " at most" : ""));
      const Result result = simulate(trace, spec, true);
      INFO(result.message);
      CHECK(result.outcome != Outcome::kError);
      if (result.outcome != Outcome::kOk) continue;
      ++ok;
      settled += spec.steady && result.cycle.settled ? 1 : 0;
      mixed += runs_a_mixed_op_again(trace, result.realised) ? 1 : 0;
      CHECK(replay(trace, spec, result.realised) == result.totals);
      const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 1_MiB});
      INFO(report.message);
      CHECK(report.outcome == HostOutcome::kOk);
      CHECK(report.corrupt == Bytes{});
    }
  }
  INFO(ok << " runs are ok, " << settled << " settle, " << mixed
          << " run an op again that updates in place and makes another output");
  CHECK(ok > (kOptimised ? 5'000 : 100));
  CHECK(mixed > (kOptimised ? 200 : 1));
  CHECK(settled > (kOptimised ? 1'500 : 30));
}

}  // namespace tidepool::small_steps_test
