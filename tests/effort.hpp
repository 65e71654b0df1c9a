// How much the tests that try everything may try: a build for finding bugs (Debug, sanitizers) is many times slower.
#pragma once

namespace tidepool::tests {

#ifdef NDEBUG
inline constexpr bool kOptimised = true;
#else
inline constexpr bool kOptimised = false;
#endif

}  // namespace tidepool::tests
