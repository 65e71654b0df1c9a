#include <memory>

#include "policies/planning/eviction/cost_victims.hpp"
#include "policies/planning/eviction/staleness_index.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Dynamic Tensor Rematerialization without neighbours: drops the buffer with the least
///   h_local(b) = cost(b) / (size(b) * staleness(b)),
/// cost in ns of the op that makes b, size in bytes, staleness in ns since an op last asked for b.
/// O(log n) amortised per change of a buffer's state and per eviction.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, section 4.1 and appendix (h_local).
class OwnCost {
 public:
  static constexpr bool kWatches = false, kBounds = false;
  void start(const View&) {}
  void dropped(const View&, VersionId) {}
  void computed(const View&, std::span<const VersionId>) {}
  template <class Visit>
  void touched(const View&, Visit) {}
  Nanos of(const View& view, VersionId v) const { return view.state(v).cost; }
};

const RegisterPolicy kDtrLocal{
    {.name = "dtr-local",
     .kind = PolicyKind::kRemat,
     .summary = "drops by own cost, size and staleness",
     .paper = "Kirisame et al., Dynamic Tensor Rematerialization, ICLR 2021, 4.1 (h_DTR local)",
     .options = {},
     .make = [](const Options&) { return std::make_unique<DropLeastCost<OwnCost, StalenessIndex>>(); }}};

}  // namespace
}  // namespace tidepool
