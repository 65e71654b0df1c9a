// Tests of what the thread sanitizer does not allow.
#pragma once

#include <string>

#include "tests/skip.hpp"

namespace tidepool::tests {

/// Whether the thread sanitizer checks this program. If so, the test is noted as skipped because of `reason`, and must
/// return.
inline bool skipped_by_thread_sanitizer([[maybe_unused]] const std::string& reason) {
#ifdef __SANITIZE_THREAD__
  skip("the thread sanitizer " + reason);
  return true;
#else
  return false;
#endif
}

}  // namespace tidepool::tests
