// Runs for tests of closed forms: bytes are counted without addresses, and copying a byte takes a nanosecond.
#pragma once

#include <string>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"

namespace tidepool::tests {

/// A run with any outcome. If it ends well, replaying its plan must give the same cost.
inline Result exact_run(const Trace& trace, const std::string& policy, Bytes capacity = kNoLimit) {
  const RunSpec spec{
      .pool = "ideal", .policy = policy, .capacity = capacity, .machine = byte_per_nano(), .overhead_limit = {}};
  Result result = simulate(trace, spec, true);
  if (result.outcome == Outcome::kOk) CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

/// The same for a run that must end well.
inline Result exact_run_that_ends_well(const Trace& trace, const std::string& policy, Bytes capacity = kNoLimit) {
  Result result = exact_run(trace, policy, capacity);
  INFO(result.message);
  REQUIRE(result.outcome == Outcome::kOk);
  return result;
}

}  // namespace tidepool::tests
