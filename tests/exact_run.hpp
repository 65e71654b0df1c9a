// Runs for closed forms: bytes are counted without addresses, and a copied byte takes a nanosecond.
#pragma once

#include <string>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"

namespace tidepool::tests {

/// However it ends; a run that ends well must cost the same when its plan is replayed.
inline Result exact_run(const Trace& trace, const std::string& policy, Bytes capacity = kNoLimit) {
  const RunSpec spec{
      .pool = "ideal", .policy = policy, .capacity = capacity, .machine = byte_per_nano(), .overhead_limit = {}};
  Result result = simulate(trace, spec, true);
  if (result.outcome == Outcome::kOk) CHECK(replay(trace, spec, result.realised) == result.totals);
  return result;
}

/// The same of what must end well.
inline Result exact_run_that_ends_well(const Trace& trace, const std::string& policy, Bytes capacity = kNoLimit) {
  Result result = exact_run(trace, policy, capacity);
  INFO(result.message);
  REQUIRE(result.outcome == Outcome::kOk);
  return result;
}

}  // namespace tidepool::tests
