// A policy that evicts by cost, size and time until the next use, which an offline trace contains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "policies/planning/eviction/evicted_regions.hpp"
#include "policies/planning/eviction/next_uses.hpp"
#include "policies/planning/eviction/tournament.hpp"
#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/policy.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Instants (ops in program order), each with a set of versions. The set of an instant is kept after the previous
/// instant (or from the first op on) up to and including its own. After the last instant any version may be evicted.
struct KeepPlan {
  struct Instant {
    std::uint32_t op = 0;
    std::vector<bool> keep;  // by version
  };
  std::vector<Instant> instants;

  /// The first instant at or after an op; none after the last one.
  const Instant* ahead(std::uint32_t op) const {
    const auto found = std::lower_bound(instants.begin(), instants.end(), op,
                                        [](const Instant& instant, std::uint32_t at) { return instant.op < at; });
    return found == instants.end() ? nullptr : &*found;
  }
};

/// Parts of the formula that decides which version is evicted first.
struct NextUseFormula {
  enum class Cost : std::uint8_t { kOwn, kAncestors, kNeighbourhood };
  Cost cost = Cost::kAncestors;
  double distance_power = 1;
};

/// Makes room by dropping the droppable version v with the least
///   cost(v) / (size(v) * distance(v) ^ power)
/// Cost, in ns: of v alone; or of v and all absent versions that v is recomputed from; or of these and all absent
/// versions that are recomputed from v.
/// Distance, in ns: 1 plus the time of the ops, each run once, from the waiting op to the next op that reads v or an
/// absent version recomputed from v. A version that is never used again is cheapest. Ties: the version that became
/// evictable last; among versions whose quotient is 0, the one that became evictable first. Regions are those of the
/// true graph, even while an op waits for its inputs: EvictedRegions::begun() is not called.
///
/// If swapping is allowed, v is swapped out if that is cheaper or if v cannot be recomputed, unless the program no
/// longer needs v. Its cost is then the time of the swap-out (none if the host has a copy) and of the swap-in. A region
/// continues through versions that are only on the host; at most 33 versions of each of the two regions count.
///
/// The index holds lower bounds of the quotient: the cost counts only the versions visited so far, and the distance may
/// be too long. While the first candidate has only a bound, its evicted regions are walked, but only until a candidate
/// with a known value comes before it. At worst O(uses) per candidate at each eviction, much less if few regions must
/// be walked.
class DropByNextUse final : public Policy, public Explainer {
 public:
  /// By version: a factor of its cost.
  using Weights = std::vector<float>;

  /// @param plan     versions that are evicted only if no other is left; may be none
  /// @param weights  may be none
  explicit DropByNextUse(NextUseFormula formula, std::shared_ptr<const KeepPlan> plan = {},
                         std::shared_ptr<const Weights> weights = {}, bool may_copy = false)
      : formula_{formula}, plan_{std::move(plan)}, weights_{std::move(weights)}, may_copy_{may_copy} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec&) override {
    uses_.emplace(trace);
    return {};
  }
  void start(const View& view) override;
  bool watches() const override { return true; }
  void dropped(const View& view, VersionId v) override { regions_.dropped(view, v); }
  void computed(const View& view, std::span<const VersionId> versions) override { regions_.computed(view, versions); }
  void make_room(const View& view, const Request&, std::vector<Action>& out) override;
  Ranking ranking(const View&, const Request&) override;
  std::int64_t cost_evaluations() const override { return evaluations_; }

 private:
  struct Key {
    static constexpr const char* kScore = "cost / (size * time until the next use), 1/B";
    double value = 0;
    std::uint32_t order = 0;
    bool kept = false;
    double score() const { return value; }
    bool before(const Key& other) const {
      if (kept != other.kept) return other.kept;
      if (value != other.value) return value < other.value;
      return value == 0 ? order < other.order : order > other.order;
    }
  };
  struct Entry {
    Nanos cost;                             // a lower bound
    std::uint32_t next = NextUses::kNever;  // an upper bound
    std::uint32_t known_in = 0;             // the last search that computed both exactly
    bool raised = false;                    // cost and next include those of other versions
  };

  static Nanos copies(const View& view, VersionId v);
  Action eviction(const View& view, VersionId v) const;
  double score(const View& view, VersionId v, Nanos cost, std::uint32_t next);
  Key key(const View& view, VersionId v, Nanos cost, std::uint32_t next);
  void set(const View& view, VersionId v);
  void lower(const View& view, VersionId v);
  void look_around(const View& view, VersionId v, const std::optional<Key>& best);

  NextUseFormula formula_;
  std::shared_ptr<const KeepPlan> plan_;
  std::shared_ptr<const Weights> weights_;
  bool may_copy_;
  const KeepPlan::Instant* ahead_ = nullptr;
  std::optional<NextUses> uses_;
  EvictedRegions regions_;
  Tournament<Key> index_;
  std::vector<Key> keys_;       // by version, as in the index
  std::vector<Entry> entries_;  // by version
  std::vector<VersionId> cheaper_;
  std::uint32_t search_ = 0;
  std::int64_t evaluations_ = 0;
};

}  // namespace tidepool
