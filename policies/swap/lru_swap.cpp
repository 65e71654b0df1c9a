#include <memory>

#include "policies/planning/eviction/victims.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Swapping on demand: on a shortage, the buffer that was used longest ago is swapped out; it is swapped in when an op
/// reads it. Nothing is prefetched: this is the baseline that swap planners improve on. O(log n) per change of a
/// buffer's state.
/// Source: least-recently-used replacement (Belady 1966), as in demand paging of unified memory.
const RegisterPolicy kLruSwap{{.name = "lru-swap",
                               .kind = PolicyKind::kSwap,
                               .summary = "copies the buffer that was used longest ago to the host, on demand",
                               .paper = "demand paging with least-recently-used replacement (Belady 1966)",
                               .options = {},
                               .make = [](const Options&) { return std::make_unique<SwapOutLeast<OldestFirst>>(); }}};

}  // namespace
}  // namespace tidepool
