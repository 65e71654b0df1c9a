#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "policies/planning/eviction/evicted_classes.hpp"
#include "policies/planning/eviction/places_by_address.hpp"
#include "policies/remat/coop/contiguous_window.hpp"
#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Union-find over evicted versions, as in OneFlow. An evicted version joins the sets of the evicted inputs and outputs
/// of its producer, and times add up. When a version is recomputed, its time is subtracted; sets are not split.
class EvictedSets {
 public:
  void reset(const Trace& trace) {
    node_of_.assign(trace.versions().size(), kNone);
    parents_.clear();
    times_.clear();
    first_.assign(1, 0);
    roots_.clear();
    for (std::size_t op = 0; op < trace.ops().size(); ++op) {
      for (const Use& use : trace.uses(OpId{op})) {
        if (use.in.valid()) roots_.push_back(trace.root(use.in));
        if (use.out.valid()) roots_.push_back(trace.root(use.out));
      }
      first_.push_back(static_cast<std::uint32_t>(roots_.size()));
    }
  }
  void evict(const View& view, VersionId v) {
    const std::uint32_t own = node_of_[v.index()] = static_cast<std::uint32_t>(parents_.size());
    parents_.push_back(own);
    times_.push_back(view.state(v).cost);
    for_each_neighbour(view, v, [&](VersionId u) {
      if (node_of_[u.index()] == kNone) return;
      const std::uint32_t other = find(node_of_[u.index()]), root = find(own);
      if (other == root) return;
      parents_[other] = root;
      times_[root] += times_[other];
    });
  }
  void restore(const View& view, VersionId v) {
    if (node_of_[v.index()] == kNone) return;
    times_[find(node_of_[v.index()])] -= view.state(v).cost;
    node_of_[v.index()] = kNone;
  }
  /// c(v) + sum over the evicted neighbours u of max(time of u's set, c(u)).
  Nanos neighbour_cost(const View& view, VersionId v) {
    Nanos sum = view.state(v).cost;
    for_each_neighbour(view, v, [&](VersionId u) {
      if (node_of_[u.index()] != kNone) sum += std::max(times_[find(node_of_[u.index()])], view.state(u).cost);
    });
    return sum;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Visits the inputs and the other outputs of the op that makes v.
  template <class Visit>
  void for_each_neighbour(const View& view, VersionId v, Visit visit) const {
    const OpId producer = view.trace().version(v).producer;
    if (!producer.valid()) return;
    for (std::uint32_t i = first_[producer.index()]; i < first_[producer.index() + 1]; ++i)
      if (roots_[i] != v) visit(roots_[i]);
  }
  std::uint32_t find(std::uint32_t node) {
    while (parents_[node] != node) node = parents_[node] = parents_[parents_[node]];
    return node;
  }

  std::vector<std::uint32_t> first_;    // by op, and one more: index into roots_
  std::vector<VersionId> roots_;        // versions that ops read and write, in the order of their uses
  std::vector<std::uint32_t> node_of_;  // by version
  std::vector<std::uint32_t> parents_;
  std::vector<Nanos> times_;  // of each set, at its root
};

/// Coop's sliding window: evicts the contiguous range of buffers that makes enough room with the least
///   sum of N(t) / staleness(t),   N(t) = c(t) + sum over evicted inputs and outputs u of t's producer of the larger of
///                                        the time of u's set of evicted versions and c(u),
/// costs and staleness in ns of compute time. A window may contain free memory (at no cost) but no buffer that must
/// stay. A request takes one pass over all pieces, and computes each cost once. Meant for pools with one arena; the
/// pool `two-ended` is Coop's cheap tensor partitioning. On every pool an in-place write keeps the address, and the old
/// content can be recomputed. With window=exact, windows that end with the last piece are shrunk too, and the costs of
/// each window are computed together: a buffer's inputs inside the window add their own costs.
/// O(pieces) per request; exact: O(pieces + sum of the windows' lengths).
/// Paper: Zhang et al., "Coop: Memory is not a Commodity", NeurIPS 2023; code: OneFlow 25c8978c, core/vm/remat.
class Coop final : public Policy, public Explainer {
 public:
  explicit Coop(const Options& options)
      : contiguous_{options.word("window") == "contiguous"},
        by_classes_{options.word("neighbours") == "classes"},
        small_{options.bytes("small")},
        keep_mutated_{options.word("inplace") == "pinned"} {}

  void start(const View& view) override {
    pieces_.reset(view);
    sets_.reset(view.trace());
    if (by_classes_) classes_.start(view);
    mutated_.assign(view.trace().buffers().size(), false);
    in_window_.assign(view.trace().versions().size(), 0);
    if (!keep_mutated_) return;
    for (const Version& version : view.trace().versions())
      if (version.kind == VersionKind::kUpdate) mutated_[version.buffer.index()] = true;
  }

  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    view.drain_changes([&](VersionId v) { pieces_.note(v); });
    list_stretches(view);
    Window best;
    for_each_priced(view, request, [&](const Window& window) {
      if (window.cost < best.cost) best = window;
    });
    for (const VersionId v : members(best)) out.push_back({.verb = Verb::kDrop, .subject = v.value()});
  }

  Ranking ranking(const View& view, const Request& request) override {
    using Key = std::pair<double, std::size_t>;  // cost, position by address
    std::vector<std::pair<Key, RankedVersions>> all;
    const std::int64_t evaluations = evaluations_;
    for_each_priced(view, request, [&](const Window& window) {
      all.emplace_back(Key{window.cost, all.size()}, RankedVersions{.versions = members(window), .score = window.cost});
    });
    evaluations_ = evaluations;  // evaluations for the explanation do not count
    return rank("sum of cost / time since the last use over a window", std::move(all), std::less<Key>{});
  }

  bool watches() const override { return true; }
  void dropped(const View& view, VersionId v) override {
    if (by_classes_) return classes_.dropped(view, v);
    sets_.evict(view, v);
  }
  void computed(const View& view, std::span<const VersionId> versions) override {
    if (by_classes_) return classes_.computed(view, versions);
    for (const VersionId v : versions) sets_.restore(view, v);
  }
  std::int64_t cost_evaluations() const override { return evaluations_; }

 private:
  void list_stretches(const View& view) {
    stretches_.clear();
    Bytes top;
    for (const Piece& piece : pieces_.in_order(view)) {
      if (piece.begin > top) stretches_.push_back({piece.begin - top, 0, {}, false});
      top = piece.end;
      const Bytes size = piece.end - piece.begin;
      if (may_go(view, piece.version)) {
        ++evaluations_;
        stretches_.push_back({size, cost(view, piece.version), piece.version, false});
      } else {
        stretches_.push_back({size, 0, piece.version, true});
      }
    }
    if (view.capacity() > top) stretches_.push_back({view.capacity() - top, 0, {}, false});
  }

  /// Calls visit(Window), with the window's cost, for every window of the listed stretches that makes enough room.
  template <class Visit>
  void for_each_priced(const View& view, const Request& request, Visit visit) {
    for_each_window(stretches_, request.size, !contiguous_, [&](Window window) {
      if (!contiguous_) window.cost = cost_together(view, window);
      visit(window);
    });
  }

  /// The versions in a window, by address.
  std::vector<VersionId> members(const Window& window) const {
    std::vector<VersionId> found;
    for (std::size_t i = window.first; i < window.last; ++i)
      if (stretches_[i].version.valid()) found.push_back(stretches_[i].version);
    return found;
  }

  bool may_go(const View& view, VersionId v) const {
    return view.droppable(v) && view.size(v) > small_ && !mutated_[view.trace().version(v).buffer.index()];
  }

  double cost(const View& view, VersionId v) {
    return per_staleness(view, v, by_classes_ ? classes_.of(view, v) : sets_.neighbour_cost(view, v));
  }

  /// The cost of evicting a whole window, whose members count as each other's evicted neighbours.
  double cost_together(const View& view, const Window& window) {
    ++window_count_;
    const auto member = [&](VersionId v) { return in_window_[v.index()] == window_count_; };
    for (std::size_t i = window.first; i < window.last; ++i)
      if (stretches_[i].version.valid()) in_window_[stretches_[i].version.index()] = window_count_;
    double sum = 0;
    for (std::size_t i = window.first; i < window.last; ++i) {
      const VersionId v = stretches_[i].version;
      if (!v.valid()) continue;
      Nanos inside;
      view.for_each_parent(v, [&](VersionId u) {
        if (member(u)) inside += view.state(u).cost;
      });
      ++evaluations_;
      sum += stretches_[i].cost + per_staleness(view, v, inside);
    }
    return sum;
  }

  bool contiguous_, by_classes_;
  Bytes small_;
  bool keep_mutated_;
  Pieces pieces_;
  EvictedSets sets_;
  EvictedClasses<false> classes_;
  std::vector<Stretch> stretches_;
  std::vector<bool> mutated_;             // by buffer
  std::vector<std::uint64_t> in_window_;  // by version: the last window that contained it
  std::uint64_t window_count_ = 0;
  std::int64_t evaluations_ = 0;
};

const RegisterPolicy kCoop{
    {.name = "coop",
     .kind = PolicyKind::kRemat,
     .summary = "drops the cheapest contiguous run of buffers that makes the room",
     .paper = "Zhang et al., Coop: Memory is not a Commodity, NeurIPS 2023",
     .options = {{"window", "contiguous", "contiguous|exact", "as published, or with costs counted together"},
                 {"neighbours", "producer", "producer|classes",
                  "evicted inputs and outputs of the producer, as OneFlow, or all evicted neighbours, as dtr-eq"},
                 {"small", "0B", "bytes",
                  "buffers up to this are never evicted; OneFlow: 10kB, in a region of their own"},
                 {"inplace", "recomputable", "recomputable|pinned",
                  "whether buffers that are changed in place may be evicted; OneFlow pins them"}},
     .make = [](const Options& options) { return std::make_unique<Coop>(options); }}};

}  // namespace
}  // namespace tidepool
