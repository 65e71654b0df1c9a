#include <memory>

#include "policies/planning/eviction/region_victims.hpp"
#include "policies/planning/eviction/staleness_index.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Dynamic Tensor Rematerialization: drops the buffer with the least
///   h_DTR(b) = (cost(b) + sum of cost over e*(b)) / (size(b) * staleness(b)),
/// costs in ns of the ops that make the buffers, size in bytes, staleness in ns since an op last asked for b. e*(b) is
/// the evicted neighbourhood: all absent buffers that b is recomputed from, or that are recomputed from b, directly or
/// through absent buffers only. Cost per eviction: see DropLeastRegion.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, section 4.1.
using Dtr = DropLeastRegion<StalenessIndex, EvictedRegions::Side::kParents, EvictedRegions::Side::kChildren>;

const RegisterPolicy kDtr{{.name = "dtr",
                           .kind = PolicyKind::kRemat,
                           .summary = "drops by cost of the evicted neighbourhood, size and staleness",
                           .paper = "Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, 4.1 (h_DTR)",
                           .options = {},
                           .make = [](const Options&) { return std::make_unique<Dtr>(); }}};

}  // namespace
}  // namespace tidepool
