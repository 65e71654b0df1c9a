// Effort of tests that try all cases: in a build without optimisation (Debug, as with the preset asan) or with the
// thread sanitizer they are many times slower.
#pragma once

#include "tests/skip.hpp"

namespace tidepool::tests {

#if defined(NDEBUG) && !defined(__SANITIZE_THREAD__)
inline constexpr bool kOptimised = true;
#else
inline constexpr bool kOptimised = false;
#endif

/// Whether a test may run that takes minutes in such a build. If not, it is noted as skipped, and must return.
inline bool optimised() {
  if (!kOptimised) skip("takes minutes in a build for finding bugs");
  return kOptimised;
}

}  // namespace tidepool::tests
