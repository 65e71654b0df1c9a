#include <memory>

#include "simulator/registry.hpp"
#include "simulator/victims.hpp"

namespace tidepool {
namespace {

/// Swapping on demand: when a place is needed, copies the buffer that was used longest ago to the host; it is copied
/// back when an op reads it. No prefetch: the baseline that swap planners improve on. O(log n) per change of a buffer's
/// state. Source: least-recently-used replacement (Belady 1966), as in demand paging of unified memory.
struct OldestFirst {
  Nanos last_access;
  std::uint32_t order = 0;
  OldestFirst() = default;
  OldestFirst(const View& view, VersionId v) : last_access{view.state(v).last_access}, order{view.state(v).order} {}
  bool before(const OldestFirst& other) const {
    return last_access != other.last_access ? last_access < other.last_access : order < other.order;
  }
};

const RegisterPolicy kRegistered{
    {.name = "lru-swap",
     .kind = PolicyKind::kSwap,
     .summary = "copies the buffer that was used longest ago to the host, on demand",
     .paper = "demand paging with least-recently-used replacement (Belady 1966)",
     .options = {},
     .make = [](const Options&) { return std::make_unique<SwapOutLeast<OldestFirst>>(); }}};

}  // namespace
}  // namespace tidepool
