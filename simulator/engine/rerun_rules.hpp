// Limits on reruns in a paper's model of recomputation.
#pragma once

#include <cstdint>

#include "simulator/run_spec.hpp"

namespace tidepool {

/// A stage begins after the first run of an op of the program, and ends with the first run of the next op.
struct RerunRules {
  bool in_order = false;       ///< in a stage ops run again at most once each, and in the order of the program
  std::int32_t most_runs = 0;  ///< of one op in an iteration; 0: any number
  bool operator==(const RerunRules&) const = default;
};

/// The limits that replay() enforces under these assumptions.
RerunRules rerun_rules(const Assumptions& assume);

}  // namespace tidepool
