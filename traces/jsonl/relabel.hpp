// Renumbering of the buffers and versions of a trace.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The same trace with buffer i numbered `buffers[i]` and version i numbered `versions[i]`; each a permutation.
Trace relabel(const Trace& trace, const std::vector<std::uint32_t>& buffers,
              const std::vector<std::uint32_t>& versions);

}  // namespace tidepool
