#include <limits>
#include <memory>

#include "simulator/cost_victims.hpp"
#include "simulator/evicted_regions.hpp"
#include "simulator/quotient.hpp"
#include "simulator/registry.hpp"
#include "simulator/tournament.hpp"

namespace tidepool {
namespace {

/// Memory saved per second: drops the buffer with the least
///   h_MSPS(b) = (cost(b) + sum of cost over the absent buffers that b would be recomputed from) / size(b),
/// costs in ns, size in bytes. Of equal ones the last that became evictable goes, of those that cost nothing the first.
/// O(regions at the frontier) per eviction and recomputation, O(log n) per changed cost.
/// Papers: Peng et al., "Capuchin", ASPLOS 2020, section 4.3 (MSPS); as defined by Kirisame et al., "Dynamic Tensor
/// Rematerialization", ICLR 2021, section 4.1.
class WithEvictedAncestors {
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
    return view.state(v).cost + regions_.cost(EvictedRegions::Side::kParents, v);
  }

 private:
  EvictedRegions regions_;
  std::vector<VersionId> touched_;
};

class PerSize {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  void reset(std::size_t slots) { index_.reset(slots); }
  void set(std::uint32_t slot, Nanos cost, Bytes size, Nanos, std::uint32_t order) {
    ++evaluations_;
    const double each = size > Bytes{} ? quotient(cost.count(), size.count()) : std::numeric_limits<double>::infinity();
    index_.set(slot, {each, order});
  }
  void clear(std::uint32_t slot) { index_.clear(slot); }
  std::uint32_t least(Nanos) const { return index_.winner(); }
  std::int64_t evaluations() const { return evaluations_; }

 private:
  struct Key {
    double cost_per_byte = 0;
    std::uint32_t order = 0;
    bool before(const Key& other) const {
      if (cost_per_byte != other.cost_per_byte) return cost_per_byte < other.cost_per_byte;
      return cost_per_byte == 0 ? order < other.order : order > other.order;
    }
  };
  Tournament<Key> index_;
  std::int64_t evaluations_ = 0;
};

const RegisterPolicy kRegistered{
    {.name = "msps",
     .kind = PolicyKind::kRemat,
     .summary = "drops by cost of what it would be recomputed from, per byte",
     .paper = "Peng et al., Capuchin, ASPLOS 2020, 4.3, as in Kirisame et al., ICLR 2021, 4.1",
     .options = {},
     .make = [](const Options&) { return std::make_unique<DropLeastCost<WithEvictedAncestors, PerSize>>(); }}};

}  // namespace
}  // namespace tidepool
