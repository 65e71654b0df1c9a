// Length of each array of a trace at a position in the file.
#pragma once

#include <array>
#include <cstddef>

#include "traces/trace.hpp"

namespace tidepool::file {

struct Counts {
  std::size_t strings = 0, streams = 0, buffers = 0, versions = 0, ops = 0, uses = 0, steps = 0, marks = 0, orders = 0;

  static Counts of(const TraceData& data) {
    return {data.strings.size(), data.streams.size(), data.buffers.size(), data.versions.size(), data.ops.size(),
            data.uses.size(),    data.events.size(),  data.marks.size(),   data.orders.size()};
  }
  std::array<std::size_t, 9> all() const {
    return {strings, streams, buffers, versions, ops, uses, steps, marks, orders};
  }
  bool operator==(const Counts&) const = default;
};

}  // namespace tidepool::file
