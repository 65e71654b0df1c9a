#include <limits>
#include <memory>

#include "policies/planning/eviction/exact_division.hpp"
#include "policies/planning/eviction/region_victims.hpp"
#include "policies/planning/eviction/tournament.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Order by least cost per byte. Among equal versions, the one that became evictable last comes first; among versions
/// without cost, the one that became evictable first.
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
  template <class Known>
  Ranking ranking(Nanos, Known known) const {
    return ranking_of(index_, known);
  }
  std::int64_t evaluations() const { return evaluations_; }

 private:
  struct Key {
    static constexpr const char* kScore = "cost / size, ns/B";
    double cost_per_byte = 0;
    std::uint32_t order = 0;
    double score() const { return cost_per_byte; }
    bool before(const Key& other) const {
      if (cost_per_byte != other.cost_per_byte) return cost_per_byte < other.cost_per_byte;
      return cost_per_byte == 0 ? order < other.order : order > other.order;
    }
  };
  Tournament<Key> index_;
  std::int64_t evaluations_ = 0;
};

/// Memory saved per second: drops the buffer with the least
///   h_MSPS(b) = (cost(b) + sum of cost over the absent buffers that b would be recomputed from) / size(b),
/// costs in ns, size in bytes. Cost per eviction: see DropLeastRegion.
/// Papers: Peng et al., "Capuchin", ASPLOS 2020, section 4.3 (MSPS); as defined by Kirisame et al., "Dynamic Tensor
/// Rematerialization", ICLR 2021, section 4.1.
using Msps = DropLeastRegion<PerSize, EvictedRegions::Side::kParents>;

const RegisterPolicy kMsps{{.name = "msps",
                            .kind = PolicyKind::kRemat,
                            .summary = "drops by cost of what it would be recomputed from, per byte",
                            .paper = "Peng et al., Capuchin, ASPLOS 2020, 4.3, as in Kirisame et al., ICLR 2021, 4.1",
                            .options = {},
                            .make = [](const Options&) { return std::make_unique<Msps>(); }}};

}  // namespace
}  // namespace tidepool
