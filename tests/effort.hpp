// Effort of tests that try everything: a build for finding bugs (Debug, sanitizers) is many times slower.
#pragma once

#include "tests/skip.hpp"

namespace tidepool::tests {

#ifdef NDEBUG
inline constexpr bool kOptimised = true;
#else
inline constexpr bool kOptimised = false;
#endif

/// Whether a test that takes minutes without optimisation may run; skips it where it may not.
inline bool optimised() {
  if (!kOptimised) skip("takes minutes in a build without optimisation");
  return kOptimised;
}

}  // namespace tidepool::tests
