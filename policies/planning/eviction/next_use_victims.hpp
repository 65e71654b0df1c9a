// Dropping by the time until content is used again, which an offline trace knows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "policies/planning/eviction/evicted_regions.hpp"
#include "policies/planning/eviction/keep_plan.hpp"
#include "policies/planning/eviction/next_uses.hpp"
#include "policies/planning/eviction/tournament.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// What decides who goes first.
struct NextUseFormula {
  enum class Cost : std::uint8_t { kOwn, kAncestors, kNeighbourhood };
  Cost cost = Cost::kAncestors;
  double distance_power = 1;
};

/// Makes room by dropping the droppable version v with the least
///   cost(v) / (size(v) * distance(v) ^ power)
/// cost in ns: of v alone, with all absent versions that it would be recomputed from, or with those that would be
/// recomputed from it too; distance in ns: the time of the ops from the one that waits to the next one that reads v or
/// an absent version that would be recomputed from v, each run once, and 1. Nothing is cheaper than what is never used
/// again. Of equal ones the last that became evictable comes first, of those that cost nothing the first. Regions are
/// those of the graph as it is, also while an op waits for its inputs: EvictedRegions::begun() is not told.
///
/// Where it may copy, too, what v costs is the time of copying it to the host, unless it is there, and back, if that is
/// less or v cannot be recomputed; v is swapped out then. Of a region, which goes on through what is only on the host,
/// no more than some 30 versions count.
///
/// The index holds bounds from below: of the cost by what has been looked at, of the distance by what is left when time
/// passes. While the one that comes first is not known, its evicted regions are walked, but no further than it takes to
/// see that a known one comes before it. O(uses) per eviction at worst, much less where few regions need to be walked.
class DropByNextUse final : public Policy {
 public:
  /// By version: what its cost counts, in the place of 1.
  using Weights = std::vector<float>;

  /// @param plan     what goes only when nothing else is left; may be none
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
  std::int64_t cost_evaluations() const override { return evaluations_; }

 private:
  struct Key {
    double score = 0;
    std::uint32_t order = 0;
    bool kept = false;
    bool before(const Key& other) const {
      if (kept != other.kept) return other.kept;
      if (score != other.score) return score < other.score;
      return score == 0 ? order < other.order : order > other.order;
    }
  };
  struct Entry {
    Nanos cost;                             // at most what it is
    std::uint32_t next = NextUses::kNever;  // at least what it is
    std::uint32_t known_in = 0;             // the last search in which both were found
    bool raised = false;                    // they are not just the version's own
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
