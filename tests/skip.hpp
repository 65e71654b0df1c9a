// Tests that cannot check anything here say so; the program then ends with a code of its own, which ctest shows as
// skipped.
#pragma once

#include <string>

#include "tests/catch.hpp"

namespace tidepool::tests {

/// How the test program ends if nothing failed and something was skipped.
inline constexpr int kSkippedExitCode = 4;

/// Has any test called skip()?
inline bool skipped_any = false;

/// Notes that the running test, or a part of it, is left out because of `reason`.
inline void skip(const std::string& reason) {
  skipped_any = true;
  WARN("skipped: " + reason);
}

}  // namespace tidepool::tests
