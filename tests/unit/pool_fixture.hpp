// Pools for tests, made by name, on a device that gives consecutive addresses.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/segment_device.hpp"
#include "simulator/registry.hpp"
#include "traces/builder.hpp"

namespace tidepool::testing {

/// A pool made from its spec, as in "best-fit(alignment=1B)", ready to place.
struct PoolUnderTest {
  PoolUnderTest(const std::string& text, Bytes capacity) : device{capacity} {
    const Spec spec{text};
    const PoolInfo& info = find_pool(spec.name);
    pool = info.make(Options{info.name, info.options, spec.options});
    pool->start(trace, capacity, device);
  }

  std::optional<Block> place(Bytes size, std::size_t stream = 0, Nanos now = {}) {
    return pool->place({.size = size, .stream = StreamId{stream}, .version = {}, .now = now});
  }
  /// Frees a block of stream 0. The other streams that have used it are done with their work at the times in `uses`.
  void give_back(const Block& block, std::vector<StreamUse> uses) {
    pool->give_back(block, {.stream = StreamId{0}, .before = {}, .done = {}, .uses = uses});
  }

  Trace trace = TraceBuilder{}.finish();
  SegmentDevice device;
  std::unique_ptr<Pool> pool;
};

}  // namespace tidepool::testing
