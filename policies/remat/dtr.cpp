#include <memory>

#include "simulator/cost_victims.hpp"
#include "simulator/evicted_regions.hpp"
#include "simulator/registry.hpp"
#include "simulator/staleness_index.hpp"

namespace tidepool {
namespace {

/// Dynamic Tensor Rematerialization: drops the buffer with the least
///   h_DTR(b) = (cost(b) + sum of cost over e*(b)) / (size(b) * staleness(b)),
/// costs in ns of the ops that make the buffers, size in bytes, staleness in ns since an op last asked for b. e*(b) is
/// the evicted neighbourhood: all absent buffers that must be recomputed before b could be, or that need b to be
/// recomputed, through absent buffers only. O(regions at the frontier) per eviction and recomputation, O(log n) per
/// changed cost. Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, section 4.1.
class WithEvictedNeighbourhood {
 public:
  static constexpr bool kWatches = true;
  void start(const View& view) { regions_.start(view); }
  void dropped(const View& view, VersionId v) { regions_.dropped(view, v); }
  void computed(const View& view, std::span<const VersionId> versions) { regions_.computed(view, versions); }
  template <class Visit>
  void touched(const View&, Visit visit) {
    regions_.take_changed(touched_);
    for (const VersionId v : touched_) visit(v);
  }
  Nanos of(const View& view, VersionId v) const {
    return view.state(v).cost + regions_.cost(EvictedRegions::Side::kParents, v) +
           regions_.cost(EvictedRegions::Side::kChildren, v);
  }

 private:
  EvictedRegions regions_;
  std::vector<VersionId> touched_;
};

const RegisterPolicy kRegistered{{.name = "dtr",
                                  .kind = PolicyKind::kRemat,
                                  .summary = "drops by cost of the evicted neighbourhood, size and staleness",
                                  .paper = "Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, 4.1 (h_DTR)",
                                  .options = {},
                                  .make = [](const Options&) {
                                    return std::make_unique<DropLeastCost<WithEvictedNeighbourhood, StalenessIndex>>();
                                  }}};

}  // namespace
}  // namespace tidepool
