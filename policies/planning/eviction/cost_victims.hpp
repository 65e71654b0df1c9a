// Policies that drop the version with the least cost by a published formula, one at a time.
#pragma once

#include <span>
#include <vector>

#include "simulator/decisions/explainer.hpp"
#include "simulator/policy.hpp"

namespace tidepool {

/// Makes room by dropping the droppable version that `Index` finds.
/// @tparam Cost   what it costs to have a version back:
///                  static constexpr bool kWatches      whether it wants dropped() and computed()
///                  void start(const View&)
///                  void dropped(const View&, VersionId)
///                  void computed(const View&, std::span<const VersionId>)
///                  template touched(const View&, visit) calls visit(VersionId) for each version whose cost may have
///                                                       changed since the last call, other than through its own state
///                  Nanos of(const View&, VersionId)
/// @tparam Index  reset(slots), set(slot, cost, size, last access, order), clear(slot), least(now), evaluations();
///                brought up to date only when room is needed; ranking(now, known), the candidates, of which
///                known(slot) says whether the cost is known or bounded from below
template <class Cost, class Index>
class DropLeastCost final : public Policy, public Explainer {
 public:
  void start(const View& view) override {
    cost_.start(view);
    index_.reset(view.trace().versions().size());
  }

  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    const auto update = [&](VersionId v) {
      if (!view.droppable(v)) return index_.clear(v.value());
      const VersionState& state = view.state(v);
      index_.set(v.value(), cost_.of(view, v), view.size(v), state.last_access, state.order);
    };
    view.drain_changes(update);
    cost_.touched(view, update);
    if (const std::uint32_t victim = index_.least(view.now()); victim != Index::kNone)
      out.push_back({.verb = Verb::kDrop, .subject = victim});
  }

  Ranking ranking(const View& view, const Request&) override {
    return index_.ranking(view.now(), [](std::uint32_t) { return true; });
  }
  bool watches() const override { return Cost::kWatches; }
  void dropped(const View& view, VersionId v) override { cost_.dropped(view, v); }
  void computed(const View& view, std::span<const VersionId> versions) override { cost_.computed(view, versions); }
  std::int64_t cost_evaluations() const override { return index_.evaluations(); }

 private:
  Cost cost_;
  Index index_;
};

}  // namespace tidepool
