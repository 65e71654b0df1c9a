// Random graphs of values to keep, small enough to try all schedules.
#pragma once

#include <cstdint>

#include "policies/planning/remat/checkmate.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::tests {

/// `repeatable` nodes that can be run again, and after them as many nodes that read them, from the last to the first.
inline KeepGraph random_graph(std::uint64_t seed, std::uint32_t repeatable) {
  Random random{seed};
  KeepGraph graph;
  graph.inputs.resize(2 * repeatable);
  for (std::uint32_t i = 0; i < repeatable; ++i) {
    graph.time.push_back(Nanos{static_cast<std::int64_t>(1 + random.below(9))});
    graph.size.push_back(Bytes{static_cast<std::int64_t>(1 + random.below(5))});
    graph.workspace.push_back(Bytes{static_cast<std::int64_t>(random.below(3))});
    graph.last.push_back(2 * repeatable - 1 - i);
    graph.inputs[2 * repeatable - 1 - i].push_back(i);
    graph.again_inputs.emplace_back();
    for (std::uint32_t from = 0; from < i; ++from) {
      if (from + 1 < i && !random.chance(30)) continue;
      graph.inputs[i].push_back(from);
      graph.again_inputs[i].push_back(from);
    }
    if (i > 1 && random.chance(30)) graph.again_inputs[i].erase(graph.again_inputs[i].begin());
    if (i > 0 && random.chance(30)) graph.inputs[2 * repeatable - 1 - i].push_back(i - 1);
  }
  for (std::uint32_t t = 0; t < 2 * repeatable; ++t) {
    graph.before.push_back(Bytes{static_cast<std::int64_t>(random.below(3))});
    graph.during.push_back(graph.before.back() + Bytes{static_cast<std::int64_t>(random.below(3))});
  }
  return graph;
}

}  // namespace tidepool::tests
