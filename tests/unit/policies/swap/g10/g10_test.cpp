// G10's plans in closed form, and the ledger of the link that it uses.
#include <algorithm>

#include "policies/swap/g10/bandwidth_ledger.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "traces/builder.hpp"

namespace tidepool::g10_test {

namespace {

const Machine kMachine = tests::byte_per_nano();

StepCircle slots(const std::vector<std::int64_t>& durations) {
  StepCircle circle{{0_ns}, {}};
  for (const std::int64_t each : durations) {
    circle.start.push_back(circle.start.back() + Nanos{each});
    circle.load.emplace_back(0);
  }
  return circle;
}

/// Op 0 writes buffers of these sizes | ops of these durations; b lives only during the one with number `middle` | the
/// last op reads all buffers of op 0.
Trace around_b(const std::vector<Bytes>& sizes, const std::vector<Nanos>& durations, std::size_t middle, Bytes b) {
  TraceBuilder build;
  std::vector<TraceBuilder::Touch> written, read;
  for (const Bytes size : sizes) {
    const BufferId buffer = build.alloc({.size = size});
    written.push_back({buffer, Access::kWrite});
    read.push_back({buffer, Access::kRead});
  }
  build.run({.duration = 10_ns}, written);
  for (std::size_t i = 0; i < durations.size(); ++i) {
    if (i != middle) {
      build.run({.duration = durations[i]}, {});
      continue;
    }
    const BufferId peak = build.alloc({.size = b});
    build.run({.duration = durations[i]}, {{peak, Access::kWrite}});
    build.free(peak);
  }
  build.run({.duration = 10_ns}, read);
  return build.finish();
}

/// The sizes that are swapped out before op 1, where the idle intervals of around_b() begin: those of the planned gaps.
std::vector<Bytes> planned(const Trace& trace, Bytes capacity, const std::string& policy = "g10") {
  const RunSpec spec{.pool = "ideal", .policy = policy, .capacity = capacity, .machine = kMachine};
  const Result result = simulate(trace, spec, true);
  REQUIRE(result.outcome == Outcome::kOk);
  CHECK(replay(trace, spec, result.realised) == result.totals);
  std::vector<Bytes> sizes;
  for (const Action& action : result.realised.actions)
    if (action.verb == Verb::kSwapOut && action.before == OpId{1})
      sizes.push_back(trace.size(VersionId{action.subject}));
  return sizes;
}

}  // namespace

TEST_CASE("a ledger of the link says in which slots copies end and begin") {
  BandwidthLedger ledger{slots({100, 100, 100, 100}), BytesPerSecond{1'000'000'000}};
  CHECK(ledger.ends(0, 100_B) == 0);
  CHECK(ledger.ends(0, 101_B) == 1);
  CHECK(ledger.begins(3, 100_B) == 2);
  CHECK(ledger.begins(3, 101_B) == 1);
  CHECK(ledger.ends(1, 1000_B) == 3);  // longer than all slots: ends in the last one
  CHECK(ledger.begins(3, 1000_B) == 0);
  ledger.reserve(1, 150_B);
  CHECK(ledger.left(0) == 100_B);
  CHECK(ledger.left(1) == 0_B);
  CHECK(ledger.left(2) == 50_B);
  CHECK(ledger.left(3) == 100_B);
  CHECK(ledger.ends(1, 50_B) == 2);
  CHECK(ledger.ends(1, 51_B) == 3);
  CHECK(ledger.begins(3, 50_B) == 2);
  CHECK(ledger.begins(3, 51_B) == 0);
}

TEST_CASE("G10 uses a gap if it is longer than its copies and the lead by which the buffer must be back, together") {
  // a (100 B) is idle for 200 ns and `middle`. Its copies take 100 ns each, and it is to be back 50 ns early.
  for (const auto& [middle, used] : {std::pair{51_ns, true}, std::pair{50_ns, false}}) {
    const Trace trace = around_b({100_B}, {100_ns, middle, 100_ns}, 1, 100_B);
    CHECK(planned(trace, 199_B).size() == (used ? 1 : 0));
  }
  const Trace trace = around_b({100_B}, {100_ns, 1_ns, 100_ns}, 1, 100_B);
  CHECK(planned(trace, 199_B, "g10(delta=0)").size() == 1);
  CHECK(planned(around_b({100_B}, {100_ns, 0_ns, 100_ns}, 1, 100_B), 199_B, "g10(delta=0)").empty());
}

TEST_CASE("G10 does not use a gap if the copies of other gaps have taken its bandwidth") {
  // One of two buffers (100 B) leaves in slot 1 and is back in the last slot. The other one needs a further slot on
  // each side of the peak.
  const std::vector<Bytes> two{100_B, 100_B};
  CHECK(planned(around_b(two, {100_ns, 900_ns, 100_ns}, 1, 200_B), 210_B) == std::vector<Bytes>{100_B});
  CHECK(planned(around_b(two, {100_ns, 100_ns, 900_ns, 100_ns, 100_ns}, 2, 200_B), 210_B) == two);
}

TEST_CASE("G10 takes the gap with the largest benefit, and stops when the peak is below its line") {
  const Trace trace = around_b({60_B, 100_B, 70_B}, {200_ns, 500_ns, 200_ns}, 1, 200_B);
  // The peak is 430 B; 330 B without the buffer of 100 B; 260 B if the buffer of 70 B is absent as well.
  CHECK(planned(trace, 330_B, "g10(line=1)") == std::vector<Bytes>{100_B});
  CHECK(planned(trace, 329_B, "g10(line=1)") == std::vector<Bytes>{100_B, 70_B});
  CHECK(planned(trace, 330_B, "g10(line=0.99)") == std::vector<Bytes>{100_B, 70_B});
}

TEST_CASE("G10 moves swap-ins earlier while the memory is below the line") {
  // Op 6 reads a (100 B), whose swap-in takes 100 ns and begins before op 5. With `eager` it begins before op 4:
  // until op 3 begins, b (150 B) fills the memory.
  const Trace trace = around_b({100_B}, {200_ns, 500_ns, 10_ns, 500_ns, 100_ns}, 1, 150_B);
  for (const auto& [policy, before] : {std::pair{"g10(line=1,eager=off)", 5}, std::pair{"g10(line=1)", 4}}) {
    const RunSpec spec{.pool = "ideal", .policy = policy, .capacity = 150_B, .machine = kMachine};
    const Result result = simulate(trace, spec, true);
    const auto in = std::find_if(result.realised.actions.begin(), result.realised.actions.end(),
                                 [](const Action& action) { return action.verb == Verb::kSwapIn; });
    REQUIRE(in != result.realised.actions.end());
    CHECK(in->before == OpId{static_cast<std::size_t>(before)});
    CHECK(result.totals.makespan == result.baseline);
  }
}

TEST_CASE("G10 refuses shares outside their ranges") {
  const Trace trace = around_b({100_B}, {100_ns}, 0, 100_B);
  CHECK_THROWS_WITH(planned(trace, 199_B, "g10(delta=-0.5)"), "g10: option 'delta' is '-0.5'; expected 0 to 1000");
  CHECK_THROWS_WITH(planned(trace, 199_B, "g10(line=1e300)"), "g10: option 'line' is '1e300'; expected 0 to 1");
}

}  // namespace tidepool::g10_test
