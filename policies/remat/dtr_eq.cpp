#include <memory>

#include "policies/planning/eviction/cost_victims.hpp"
#include "policies/planning/eviction/evicted_classes.hpp"
#include "policies/planning/eviction/staleness_index.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Dynamic Tensor Rematerialization with union-find in place of the exact evicted neighbourhood: drops the buffer with
/// the least
///   h_eq(b) = (cost(b) + sum over the classes of b's absent neighbours of the class's cost) / (size(b) *
///   staleness(b)),
/// costs in ns, size in bytes, staleness in ns since an op last asked for b; classes: EvictedClasses. The index holds
/// lower bounds of costs. So a change of a class's cost does not make all adjacent buffers compute their costs again.
/// O(log n) per computed cost.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, section 4.1 and appendix (h_DTR^eq).
using DtrEq = DropLeastCost<EvictedClasses<true>, StalenessIndex>;

const RegisterPolicy kDtrEq{{.name = "dtr-eq",
                             .kind = PolicyKind::kRemat,
                             .summary = "drops by cost of the classes of evicted neighbours, size and staleness",
                             .paper = "Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, 4.1 (h_DTR eq)",
                             .options = {},
                             .make = [](const Options&) { return std::make_unique<DtrEq>(); }}};

}  // namespace
}  // namespace tidepool
