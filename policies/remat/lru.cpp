#include <memory>

#include "policies/planning/eviction/victims.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Drops the buffer that was used longest ago: h_LRU(b) = last access of b, least first. O(log n) per change of a
/// buffer's state.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, section 4.1.
const RegisterPolicy kLru{{.name = "lru",
                           .kind = PolicyKind::kRemat,
                           .summary = "drops the buffer that was used longest ago",
                           .paper = "Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, 4.1",
                           .options = {},
                           .make = [](const Options&) { return std::make_unique<DropLeast<OldestFirst>>(); }}};

}  // namespace
}  // namespace tidepool
