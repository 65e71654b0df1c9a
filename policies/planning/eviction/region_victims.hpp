// Policies that drop the version with the least cost, including the cost of its evicted regions.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "policies/planning/eviction/evicted_regions.hpp"
#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// Drops the droppable version that `Index` finds. A version's cost is its own plus that of its evicted regions on
/// `kSides`. The index holds lower bounds: at first, a version's own cost. While the first candidate has only a bound,
/// its regions are found; it is the victim if it is still first with its true cost. Once these searches have cost as
/// much as computing new bounds for all versions, the new bounds are computed, at most once per eviction.
/// At worst O(uses) per candidate at each eviction, much less if few regions must be found.
/// @tparam Index  as for DropLeastCost; of the values that set() gets, only the cost may be a lower bound
template <class Index, EvictedRegions::Side... kSides>
class DropLeastRegion final : public Policy, public Explainer {
 public:
  void start(const View& view) override {
    regions_.start(view);
    index_.reset(view.trace().versions().size());
    entries_.assign(view.trace().versions().size(), Entry{});
  }
  void before_run(const View& view, OpId op, std::vector<Action>&) override { regions_.begun(view, op); }
  bool watches() const override { return true; }
  void dropped(const View& view, VersionId v) override { regions_.dropped(view, v); }
  void computed(const View& view, std::span<const VersionId> versions) override { regions_.computed(view, versions); }

  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    const auto lower = [&](VersionId v) { set(view, v, view.state(v).cost); };
    view.drain_changes(lower);
    regions_.take_cheaper(view, {kSides...}, cheaper_);
    for (const VersionId v : cheaper_)
      if (std::exchange(entries_[v.index()].raised, false)) lower(v);
    ++search_;
    const auto size = static_cast<std::int64_t>(view.trace().data().uses.size() + view.trace().versions().size());
    std::int64_t budget = regions_.looked_at() + size;
    for (;;) {
      const std::uint32_t first = index_.least(view.now());
      if (first == Index::kNone) return;
      if (entries_[first].known_in == search_) return out.push_back({.verb = Verb::kDrop, .subject = first});
      if (regions_.looked_at() > budget) {
        raise_all(view);
        budget = kAlways;
        continue;
      }
      const VersionId v{first};
      entries_[first].known_in = search_;
      raise(view, v, view.state(v).cost + (regions_.cost(view, kSides, v) + ...));
    }
  }

  Ranking ranking(const View& view, const Request&) override {
    return index_.ranking(view.now(), [&](std::uint32_t slot) { return entries_[slot].known_in == search_; });
  }
  std::int64_t cost_evaluations() const override { return index_.evaluations(); }

 private:
  static constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::max();

  struct Entry {
    std::uint32_t known_in = 0;  // the last search that found the cost
    bool raised = false;         // the index may hold a bound above the version's own cost
  };

  void set(const View& view, VersionId v, Nanos cost) {
    if (!view.droppable(v)) return index_.clear(v.value());
    const VersionState& state = view.state(v);
    index_.set(v.value(), cost, view.size(v), state.last_access, state.order);
  }
  void raise(const View& view, VersionId v, Nanos cost) {
    set(view, v, cost);
    entries_[v.index()].raised = true;
  }
  void raise_all(const View& view) {
    regions_.find_bounds(view);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const VersionId v{i};
      if (entries_[i].known_in == search_ || !view.droppable(v)) continue;
      const Nanos around = (regions_.bound(view, kSides, v) + ...);
      if (around > Nanos{}) raise(view, v, view.state(v).cost + around);
    }
  }

  EvictedRegions regions_;
  Index index_;
  std::vector<Entry> entries_;  // by version
  std::vector<VersionId> cheaper_;
  std::uint32_t search_ = 0;
};

}  // namespace tidepool
