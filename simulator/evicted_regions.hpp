// What would have to be recomputed for, or because of, every resident version: the evicted versions around it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "simulator/neighbours.hpp"
#include "simulator/state.hpp"

namespace tidepool {

/// For every resident version and each direction: the absent versions that are reachable through absent versions only
/// (the region), the resident ones at its edge (the frontier), and the summed cost of the region. Kept up to date from
/// the events of a run, as the DTR authors do it: when a version is evicted, the regions at its frontier absorb its
/// own; when versions are computed, the regions at their frontier are found anew. An op's outputs belong to the regions
/// that are found anew between the start of the op and its end, and to no others. O(regions of the frontier) per event.
/// Paper: Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, appendix (evicted neighborhood e*).
class EvictedRegions {
 public:
  using Side = Neighbours::Side;

  void start(const View& view);
  void dropped(const View& view, VersionId v);
  void computed(const View& view, std::span<const VersionId> versions);

  /// Summed cost of the region of a resident version.
  Nanos cost(Side side, VersionId v) const { return regions_[index(side)][v.index()].cost; }
  /// Takes the list of versions whose regions have changed since the last call; may name one twice.
  void take_changed(std::vector<VersionId>& out) {
    out.clear();
    out.swap(changed_);
  }

 private:
  struct Region {
    std::vector<VersionId> inside, frontier;
    Nanos cost;
  };
  struct Node {
    std::uint32_t mark = 0;
    bool resident = false;
    bool pinned = false;  // resident for good: its own regions are of no interest
  };
  static std::size_t index(Side side) { return static_cast<std::size_t>(side); }
  static Side other(Side side) { return side == Side::kParents ? Side::kChildren : Side::kParents; }

  void rebuild(const View& view, Side side, VersionId base);
  void absorb(const View& view, Side side, VersionId base, VersionId evicted);
  /// Whether `v` was not marked yet since the last new mark.
  bool mark(VersionId v) { return std::exchange(nodes_[v.index()].mark, mark_) != mark_; }

  std::optional<Neighbours> neighbours_;
  std::array<std::vector<Region>, 2> regions_;  // by side and version
  std::vector<Node> nodes_;                     // by version
  std::uint32_t mark_ = 0;
  std::vector<VersionId> affected_;
  std::vector<VersionId> changed_;
};

}  // namespace tidepool
