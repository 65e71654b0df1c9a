#include "policies/planning/eviction/next_use_victims.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "policies/planning/eviction/exact_division.hpp"
#include "policies/planning/eviction/tournament.hpp"

namespace tidepool {

void DropByNextUse::start(const View& view) {
  const std::size_t versions = view.trace().versions().size();
  regions_.start(view);
  index_.reset(versions);
  keys_.assign(versions, Key{});
  entries_.assign(versions, Entry{});
  search_ = 0;
  ahead_ = nullptr;
}

/// Time of the copies of `v` to the host, if needed, and back.
Nanos DropByNextUse::copies(const View& view, VersionId v) {
  const Bytes size = view.size(v);
  return view.machine().h2d.time(size) + (view.state(v).on_host ? Nanos{} : view.machine().d2h.time(size));
}

/// The action that evicts `v`, whose entry must have the exact cost.
Action DropByNextUse::eviction(const View& view, VersionId v) const {
  const VersionState& state = view.state(v);
  const bool copied = may_copy_ && state.wanted && (!state.regenerable || copies(view, v) < entries_[v.index()].cost);
  return {.verb = copied ? Verb::kSwapOut : Verb::kDrop, .subject = v.value()};
}

double DropByNextUse::score(const View& view, VersionId v, Nanos cost, std::uint32_t next) {
  ++evaluations_;
  if (next == NextUses::kNever) return 0;
  if (may_copy_)
    if (const Nanos copied = copies(view, v); copied < cost || !view.state(v).regenerable) cost = copied;
  const std::int64_t size = view.size(v).count();
  if (size == 0) return std::numeric_limits<double>::infinity();
  const std::int64_t distance = uses_->between(view.op().value(), next).count() + 1;
  if (formula_.distance_power == 0) return quotient(cost.count(), size);
  if (formula_.distance_power == 1) return quotient(cost.count(), static_cast<Int128>(size) * distance);
  return static_cast<double>(cost.count()) /
         (static_cast<double>(size) * std::pow(static_cast<double>(distance), formula_.distance_power));
}

DropByNextUse::Key DropByNextUse::key(const View& view, VersionId v, Nanos cost, std::uint32_t next) {
  const double weight = weights_ ? static_cast<double>((*weights_)[v.index()]) : 1;
  const double value = weight * score(view, v, cost, next);
  return {value, view.state(v).order, ahead_ != nullptr && ahead_->keep[v.index()] && value > 0};
}

void DropByNextUse::set(const View& view, VersionId v) {
  const Entry& entry = entries_[v.index()];
  index_.set(v.index(), keys_[v.index()] = key(view, v, entry.cost, entry.next));
}

void DropByNextUse::lower(const View& view, VersionId v) {
  if (!(may_copy_ ? view.evictable(v) : view.droppable(v))) return index_.clear(v.index());
  Entry& entry = entries_[v.index()];
  entry = {view.state(v).cost, uses_->next(v, view.op().value()), 0, false};
  set(view, v);
}

/// Walks the regions of `v` until its cost is known or its score exceeds the best one. If versions may be copied, each
/// region is cut off (kMostCounted), and the cost of the part counts as known.
void DropByNextUse::look_around(const View& view, VersionId v, const std::optional<Key>& best) {
  using Side = EvictedRegions::Side;
  Entry& entry = entries_[v.index()];
  const std::uint32_t op = view.op().value();
  Nanos cost = view.state(v).cost;
  std::uint32_t next = uses_->next(v, op);
  bool beaten = false;
  std::uint32_t unchecked = 0, left = 0;
  const auto go_on = [&] {
    if (may_copy_ && left-- == 0) return false;  // regions continue through versions that are only on the host
    if (!best || ++unchecked % 16 != 0) return true;
    beaten = best->before(key(view, v, cost, next));
    return !beaten;
  };
  constexpr std::uint32_t kMostCounted = 32;
  left = kMostCounted;
  if (formula_.cost != NextUseFormula::Cost::kOwn)
    regions_.visit(view, Side::kParents, v, [&](VersionId, Nanos each) {
      cost += each;
      return go_on();
    });
  left = kMostCounted;
  if (!beaten)
    regions_.visit(view, Side::kChildren, v, [&](VersionId child, Nanos each) {
      if (formula_.cost == NextUseFormula::Cost::kNeighbourhood) cost += each;
      next = std::min(next, uses_->next(child, op));
      return go_on();
    });
  entry = {cost, next, beaten ? 0 : search_, true};
  set(view, v);
}

void DropByNextUse::make_room(const View& view, const Request&, std::vector<Action>& out) {
  view.drain_changes([&](VersionId v) { lower(view, v); });
  regions_.take_cheaper(view, {EvictedRegions::Side::kParents, EvictedRegions::Side::kChildren}, cheaper_);
  for (const VersionId v : cheaper_)
    if (entries_[v.index()].raised) lower(view, v);
  if (plan_)
    if (const KeepPlan::Instant* const ahead = plan_->ahead(view.op().value()); std::exchange(ahead_, ahead) != ahead)
      for (std::size_t i = 0; i < entries_.size(); ++i) lower(view, VersionId{i});
  ++search_;
  std::optional<Key> best;
  for (;;) {
    const std::uint32_t first = index_.winner();
    if (first == Tournament<Key>::kNone) return;
    const VersionId v{first};
    const Entry& entry = entries_[first];
    if (entry.known_in == search_) return out.push_back(eviction(view, v));
    if (const double was = keys_[first].value; key(view, v, entry.cost, entry.next).value > was) {
      set(view, v);  // the distance has become shorter
      continue;
    }
    look_around(view, v, best);
    if (entry.known_in == search_ && (!best || keys_[first].before(*best))) best = keys_[first];
  }
}

Ranking DropByNextUse::ranking(const View&, const Request&) {
  return ranking_of(index_, [&](std::uint32_t slot) { return entries_[slot].known_in == search_; });
}

}  // namespace tidepool
