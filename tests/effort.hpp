// Effort of tests that try all cases: in a build without optimisation (Debug, as with the preset asan) they are many
// times slower.
#pragma once

#include "tests/skip.hpp"

namespace tidepool::tests {

#ifdef NDEBUG
inline constexpr bool kOptimised = true;
#else
inline constexpr bool kOptimised = false;
#endif

/// Whether a test may run that takes minutes without optimisation. If not, it is noted as skipped, and must return.
inline bool optimised() {
  if (!kOptimised) skip("takes minutes in a build without optimisation");
  return kOptimised;
}

}  // namespace tidepool::tests
