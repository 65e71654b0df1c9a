// Skipped tests. A test that lacks something on this machine is skipped. If nothing fails, the program then ends with
// an exit code of its own, which ctest shows as skipped.
#pragma once

#include <string>

#include "tests/catch.hpp"

namespace tidepool::tests {

/// Exit code of the test program if nothing failed and something was skipped.
inline constexpr int kSkippedExitCode = 4;

/// Whether any test has called skip().
inline bool skipped_any = false;

/// Notes that the running test, or a part of it, is left out because of `reason`.
inline void skip(const std::string& reason) {
  skipped_any = true;
  WARN("skipped: " + reason);
}

}  // namespace tidepool::tests
