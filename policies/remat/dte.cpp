#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "policies/planning/eviction/evicted_classes.hpp"
#include "policies/planning/eviction/places_by_address.hpp"
#include "simulator/engine/decisions/ranking.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Drops, one at a time until the request fits, the buffer with the least
///   (cost(b) + sum over the classes of b's absent neighbours of the class's cost) /
///   ((size(b) + free bytes beside it) * staleness(b)),
/// costs and staleness in ns. The denominator contains the bytes that become free in one piece when b is evicted. Among
/// equal buffers, the one at the lowest address is dropped. Meant for pools with one arena. O(buffers) per eviction.
/// Paper: Hu et al., "MegTaiChi", ICS 2022 (DTE); here with the classes of dtr-eq, as in OneFlow's comparison with Coop
/// (25c8978c, core/vm/remat, ONEFLOW_REMAT_HEURISTIC_DTE).
class Dte final : public Policy, public Explainer {
 public:
  explicit Dte(const Options& options) : beside_{options.flag("beside")}, small_{options.bytes("small")} {}

  void start(const View& view) override {
    pieces_.reset(view);
    classes_.start(view);
  }

  void make_room(const View& view, const Request&, std::vector<Action>& out) override {
    view.drain_changes([&](VersionId v) { pieces_.note(v); });
    double least = std::numeric_limits<double>::infinity();
    VersionId victim;
    for_each_candidate(view, [&](VersionId v, double value) {
      ++evaluations_;
      if (value < least) least = value, victim = v;
    });
    if (victim.valid()) out.push_back({.verb = Verb::kDrop, .subject = victim.value()});
  }

  Ranking ranking(const View& view, const Request&) override {
    using Key = std::pair<double, std::size_t>;  // value, position by address
    std::vector<std::pair<Key, RankedVersions>> all;
    for_each_candidate(view, [&](VersionId v, double value) {
      all.emplace_back(Key{value, all.size()}, RankedVersions{.versions = {v}, .score = value});
    });
    return rank("cost / (bytes in one piece * time since the last use), 1/B", std::move(all), std::less<Key>{});
  }

  bool watches() const override { return true; }
  void dropped(const View& view, VersionId v) override { classes_.dropped(view, v); }
  void computed(const View& view, std::span<const VersionId> versions) override { classes_.computed(view, versions); }
  std::int64_t cost_evaluations() const override { return evaluations_; }

 private:
  /// Calls visit(version, value) for the droppable versions, by address.
  template <class Visit>
  void for_each_candidate(const View& view, Visit visit) {
    const std::vector<Piece>& pieces = pieces_.in_order(view);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const VersionId v = pieces[i].version;
      if (!view.droppable(v) || view.size(v) <= small_) continue;
      visit(v, per_staleness(view, v, classes_.of(view, v)) /
                   static_cast<double>(gain(pieces, i, view.capacity()).count()));
    }
  }

  /// Bytes that become free in one address range when a piece is evicted.
  Bytes gain(const std::vector<Piece>& pieces, std::size_t i, Bytes capacity) const {
    if (!beside_) return pieces[i].end - pieces[i].begin;
    const Bytes below = i > 0 ? pieces[i - 1].end : Bytes{};
    const Bytes above = i + 1 < pieces.size() ? pieces[i + 1].begin : capacity;
    return above - below;
  }

  bool beside_;
  Bytes small_;
  Pieces pieces_;
  EvictedClasses<false> classes_;
  std::int64_t evaluations_ = 0;
};

const RegisterPolicy kDte{
    {.name = "dte",
     .kind = PolicyKind::kRemat,
     .summary = "drops by cost of evicted neighbours, staleness, and size with the free memory beside it",
     .paper = "Hu et al., MegTaiChi, ICS 2022; OneFlow 25c8978c, core/vm/remat",
     .options = {{"beside", "on", "on/off", "count the free memory beside a buffer; off: dtr-eq by a plain scan"},
                 {"small", "0B", "bytes", "buffers up to this are never evicted; OneFlow: 10kB"}},
     .make = [](const Options& options) { return std::make_unique<Dte>(options); }}};

}  // namespace
}  // namespace tidepool
