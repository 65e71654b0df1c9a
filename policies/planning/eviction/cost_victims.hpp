// Policies that drop the version with the least cost by a published formula, one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// Makes room by dropping the droppable version that `Index` finds, one at each call. If costs have lower bounds, the
/// index holds these bounds. Then the exact cost of the first version is computed, repeatedly, until the first
/// version's cost is exact.
/// @tparam Cost   the cost of getting a version back:
///                  static constexpr bool kWatches      whether it wants dropped() and computed()
///                  static constexpr bool kBounds       whether at_least() may be less than of()
///                  void start(const View&)
///                  void dropped(const View&, VersionId)
///                  void computed(const View&, std::span<const VersionId>)
///                  template touched(const View&, visit) calls visit(VersionId) for each version whose cost may have
///                                                       changed since the last call for other reasons than its own
///                                                       state; with bounds: whose cost may have fallen below the value
///                                                       of at_least() or of() that was last computed for it
///                  Nanos of(const View&, VersionId)
///                  Nanos at_least(const View&, VersionId)   only with bounds
/// @tparam Index  reset(slots), set(slot, cost, size, last access, order), clear(slot), least(now), evaluations();
///                updated only when room is needed. A slot is the number of a version; least() gives kNone if no slot
///                is set; evaluations() counts compared costs; ranking(now, known): the candidates, where known(slot)
///                says whether the cost is exact or only bounded from below
template <class Cost, class Index>
class DropLeastCost final : public Policy, public Explainer {
 public:
  void start(const View& view) override {
    cost_.start(view);
    index_.reset(view.trace().versions().size());
    if (Cost::kBounds) known_in_.assign(view.trace().versions().size(), 0);
  }

  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    const auto update = [&](VersionId v) {
      if (!view.droppable(v)) return index_.clear(v.value());
      if constexpr (Cost::kBounds)
        set(view, v, cost_.at_least(view, v));
      else
        set(view, v, cost_.of(view, v));
    };
    view.drain_changes(update);
    cost_.touched(view, update);
    ++search_;
    for (;;) {
      const std::uint32_t first = index_.least(view.now());
      if (first == Index::kNone) return;
      if (!Cost::kBounds || std::exchange(known_in_[first], search_) == search_)
        return out.push_back({.verb = Verb::kDrop, .subject = first});
      set(view, VersionId{first}, cost_.of(view, VersionId{first}));
    }
  }

  Ranking ranking(const View& view, const Request&) override {
    return index_.ranking(view.now(), [&](std::uint32_t slot) { return !Cost::kBounds || known_in_[slot] == search_; });
  }
  bool watches() const override { return Cost::kWatches; }
  void dropped(const View& view, VersionId v) override { cost_.dropped(view, v); }
  void computed(const View& view, std::span<const VersionId> versions) override { cost_.computed(view, versions); }
  std::int64_t cost_evaluations() const override { return index_.evaluations(); }

 private:
  void set(const View& view, VersionId v, Nanos cost) {
    const VersionState& state = view.state(v);
    index_.set(v.value(), cost, view.size(v), state.last_access, state.order);
  }

  Cost cost_;
  Index index_;
  std::vector<std::uint32_t> known_in_;  // by version: the last search that found its cost
  std::uint32_t search_ = 0;
};

}  // namespace tidepool
