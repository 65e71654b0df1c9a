// Dense random instances of dynamic storage allocation, for tests and benchmarks.
#pragma once

#include <cstdint>

#include "simulator/instance.hpp"

namespace tidepool::tests {

/// Buffers of 512 B to just below 16 MiB that live for 1 to 8,191 positions. There are twice as many positions at which
/// one may begin as there are buffers. Sizes from 2^k to 2^(k+1) are equally frequent for each k, and so are lengths of
/// life. The same number of buffers always gives the same instance.
inline Instance dense_instance(std::int64_t buffers) {
  Instance instance;
  std::uint64_t state = 1;
  const auto below = [&](std::int64_t end) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(end));
  };
  for (std::int64_t i = 0; i < buffers; ++i) {
    const std::int64_t first = below(2 * buffers), scale = std::int64_t{1} << below(13);
    const std::int64_t size = (std::int64_t{1} << below(15)) * 512;
    const std::int64_t end = first + scale + below(scale);
    instance.add(Bytes{size + below(size / 512) * 512}, first, end);
  }
  return instance;
}

}  // namespace tidepool::tests
