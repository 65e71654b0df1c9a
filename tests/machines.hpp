// Machines for tests: round numbers, so that closed forms are short.
#pragma once

#include "simulator/machine.hpp"

namespace tidepool::tests {

/// 1 GB/s in each direction without latency: a copy of n bytes takes n ns. Launches and driver calls take no time.
inline Machine byte_per_nano() {
  return {.name = "byte-per-nano",
          .capacity = 1_GiB,
          .h2d = {BytesPerSecond{1'000'000'000}, 0_ns},
          .d2h = {BytesPerSecond{1'000'000'000}, 0_ns},
          .source = "made up for tests"};
}

/// Links of different rates with latency, and segments and pages that cost time.
inline Machine uneven() {
  return {.name = "uneven",
          .capacity = 1_GiB,
          .h2d = {BytesPerSecond{1'000'000'000}, 2_us},
          .d2h = {BytesPerSecond{800'000'000}, 3_us},
          .segment_alloc = 10_us,
          .segment_free = 20_us,
          .page_map = 3_us,
          .page_unmap = 4_us,
          .source = "made up for tests"};
}

}  // namespace tidepool::tests
