// Recomputation cost around a resident version, estimated with union-find.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "policies/planning/eviction/class_levels.hpp"
#include "simulator/state.hpp"

namespace tidepool {

/// Classes of evicted versions. An evicted version makes a class with its own cost, which is then united with the
/// classes of its absent neighbours; costs add up. When a version is recomputed, its cost is subtracted from its class,
/// and the version leaves it, but the class is not split. So the cost of a class may be too high or too low. Outputs of
/// the op that is about to run count as absent, with a class of cost 0. With bounds, this is a Cost for DropLeastCost.
/// About O(neighbours) per eviction and recomputation.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, appendix (h_DTR^eq).
/// @tparam kWithBounds  whether at_least() and touched() are used
template <bool kWithBounds>
class EvictedClasses {
 public:
  static constexpr bool kWatches = true, kBounds = kWithBounds;

  void start(const View& view) {
    const Trace& trace = view.trace();
    places_.assign(trace.versions().size(), Place{});
    for (std::size_t i = 0; i < places_.size(); ++i)
      places_[i].resident = trace.versions()[i].kind == VersionKind::kInitial;
    nodes_.clear();
    stale_.clear();
    if (kBounds) levels_.start(places_.size());
    // A view that reads more than its base gives the base new neighbours, and no event reports this.
    for (std::size_t i = 0; i < trace.ops().size(); ++i)
      for (const Use& use : trace.uses(OpId{i})) {
        if (use.access != Access::kView) continue;
        for (const Use& other : trace.uses(OpId{i})) {
          if (!other.in.valid() || trace.root(other.in) == trace.root(use.in)) continue;
          places_[trace.root(use.in).index()].grows = true;
          places_[trace.root(other.in).index()].grows = true;
        }
      }
  }

  void dropped(const View& view, VersionId v) {
    places_[v.index()].resident = false;
    const std::uint32_t own = places_[v.index()].node = add_node(view.state(v).cost);
    for_each_neighbour(view, v, [&](VersionId n) {
      if (places_[n.index()].resident) return join(n, own);
      if (places_[n.index()].node == kNone) {
        places_[n.index()].node = add_node(Nanos{});
        for_each_neighbour(view, n, [&](VersionId at_edge) {
          if (places_[at_edge.index()].resident) join(at_edge, places_[n.index()].node);
        });
      }
      unite(places_[n.index()].node, own);
    });
  }

  void computed(const View& view, std::span<const VersionId> versions) {
    for (const VersionId v : versions) {
      Place& place = places_[v.index()];
      place.resident = true;
      mark(v, Stale::kClasses);
      if (place.node == kNone) continue;
      const std::uint32_t root = find(std::exchange(place.node, kNone));
      for_each_neighbour(view, v, [&](VersionId n) {
        if (places_[n.index()].resident) mark(n, Stale::kClasses);
      });
      nodes_[root].cost -= view.state(v).cost;
      note_fall(root);
    }
  }

  /// Calls visit(VersionId) for the versions whose at_least() may have become invalid since the last call.
  template <class Visit>
  void touched(const View&, Visit visit) {
    for (std::size_t i = 0; i < stale_.size(); ++i) visit(stale_[i]);
    stale_.clear();
  }

  /// Cost of a resident version and of the classes next to it, each counted once.
  Nanos of(const View& view, VersionId v) {
    places_[v.index()].slack = {};
    return at_least(view, v);
  }

  /// A lower bound of of(). It is exact until a class next to the version becomes cheaper. From then until of() is
  /// called, it counts each class of positive cost at less than its cost. The difference at least doubles each time
  /// that a class becomes cheaper than it was counted.
  Nanos at_least(const View& view, VersionId v) {
    Place& place = places_[v.index()];
    if (kBounds) levels_.forget(v);
    if (place.stale == Stale::kClasses || place.grows || place.classes > kFew)
      find_classes(view, v);
    else
      add_up(v);
    place.stale = Stale::kNothing;
    return view.state(v).cost + place.around;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  static constexpr std::uint32_t kFew = 3;

  enum class Stale : std::uint8_t { kNothing, kCosts, kClasses };
  struct Place {
    Nanos around;                             // cost of adjacent classes, at least, from the last at_least()
    Nanos slack;                              // how far its noted levels are below the classes' costs
    std::array<std::uint32_t, kFew> next_to;  // nodes of adjacent classes, if they are few
    std::uint32_t node = kNone;               // of its own class, if the version is absent
    std::uint8_t classes = 0;                 // at most kFew + 1
    bool resident = false;
    bool grows = false;
    Stale stale = Stale::kClasses;
  };
  struct Node {
    std::uint32_t parent;
    Nanos cost;  // of the class, valid at its root
  };

  template <class Visit>
  void for_each_neighbour(const View& view, VersionId v, Visit visit) const {
    view.for_each_parent(v, visit);
    view.for_each_child(v, visit);
  }

  void mark(VersionId v, Stale what) {
    Place& place = places_[v.index()];
    if (kBounds && place.stale == Stale::kNothing) stale_.push_back(v);
    place.stale = std::max(place.stale, what);
  }

  /// Notes a new class next to resident version `v`.
  void join(VersionId v, std::uint32_t node) {
    Place& place = places_[v.index()];
    const bool known = place.stale != Stale::kClasses && place.classes < kFew;
    mark(v, known ? Stale::kCosts : Stale::kClasses);
    if (known) place.next_to[place.classes++] = node;
  }

  void find_classes(const View& view, VersionId v) {
    Place& place = places_[v.index()];
    roots_.clear();
    for_each_neighbour(view, v, [&](VersionId n) {
      const Place& near = places_[n.index()];
      if (near.resident || near.node == kNone) return;
      const std::uint32_t root = find(near.node);
      if (std::find(roots_.begin(), roots_.end(), root) == roots_.end()) roots_.push_back(root);
    });
    place.around = {};
    place.classes = static_cast<std::uint8_t>(std::min<std::size_t>(kFew + 1, roots_.size()));
    std::copy_n(roots_.begin(), std::min<std::size_t>(kFew, roots_.size()), place.next_to.begin());
    for (const std::uint32_t root : roots_) count_on(v, root);
  }

  /// Computes the sum around `v` from its nodes in `next_to`, some of which may have been united.
  void add_up(VersionId v) {
    Place& place = places_[v.index()];
    place.around = {};
    std::uint8_t distinct = 0;
    for (std::uint8_t i = 0; i < place.classes; ++i) {
      const std::uint32_t root = find(place.next_to[i]);
      if (std::find(place.next_to.begin(), place.next_to.begin() + distinct, root) != place.next_to.begin() + distinct)
        continue;
      place.next_to[distinct++] = root;
      count_on(v, root);
    }
    place.classes = distinct;
  }

  void count_on(VersionId v, std::uint32_t root) {
    Place& place = places_[v.index()];
    const Nanos cost = nodes_[root].cost, level = std::max(cost - place.slack, std::min(cost, Nanos{}));
    place.around += level;
    if (kBounds) levels_.note(v, root, level);
  }

  void note_fall(std::uint32_t root) {
    if (!kBounds) return;
    levels_.fell(root, nodes_[root].cost, [&](VersionId v, Nanos by) {
      Place& place = places_[v.index()];
      place.slack = std::max(place.slack * 2, by);
      mark(v, Stale::kCosts);
    });
  }

  std::uint32_t add_node(Nanos cost) {
    nodes_.push_back({static_cast<std::uint32_t>(nodes_.size()), cost});
    if (kBounds) levels_.add_class();
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }

  std::uint32_t find(std::uint32_t node) {
    while (nodes_[node].parent != node) node = nodes_[node].parent = nodes_[nodes_[node].parent].parent;
    return node;
  }

  void unite(std::uint32_t a, std::uint32_t b) {
    a = find(a), b = find(b);
    if (a == b) return;
    nodes_[a].parent = b;
    nodes_[b].cost += nodes_[a].cost;
    if (kBounds) levels_.unite(a, b, [&](VersionId v) { mark(v, Stale::kCosts); });
    note_fall(b);
  }

  std::vector<Place> places_;  // by version
  std::vector<Node> nodes_;
  std::vector<VersionId> stale_;
  std::vector<std::uint32_t> roots_;
  ClassLevels levels_;
};

}  // namespace tidepool
