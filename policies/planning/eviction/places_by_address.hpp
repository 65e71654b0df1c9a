// Resident versions in address order, for policies that choose by address.
#pragma once

#include <algorithm>
#include <vector>

#include "simulator/state.hpp"

namespace tidepool {

/// A version's place, [begin, end).
struct Piece {
  Bytes begin, end;
  VersionId version;
};

/// The places of all resident versions in address order. The caller notes the versions of View::drain_changes; then
/// in_order() takes O(places + changes * log changes).
class Pieces {
 public:
  void reset(const View& view) {
    pieces_.clear();
    is_changed_.assign(view.trace().versions().size(), false);
    changed_.clear();
  }

  /// Notes a version whose place may be new, gone or changed.
  void note(VersionId v) {
    if (is_changed_[v.index()]) return;
    is_changed_[v.index()] = true;
    changed_.push_back(v);
  }

  /// Valid until the next call.
  const std::vector<Piece>& in_order(const View& view) {
    std::erase_if(pieces_, [&](const Piece& piece) { return is_changed_[piece.version.index()]; });
    const auto old = static_cast<std::ptrdiff_t>(pieces_.size());
    for (const VersionId v : changed_) {
      is_changed_[v.index()] = false;
      const VersionState& state = view.state(v);
      if (state.placed && state.held > Bytes{}) pieces_.push_back({state.offset, state.offset + state.held, v});
    }
    changed_.clear();
    const auto below = [](const Piece& a, const Piece& b) { return a.begin < b.begin; };
    std::sort(pieces_.begin() + old, pieces_.end(), below);
    std::inplace_merge(pieces_.begin(), pieces_.begin() + old, pieces_.end(), below);
    return pieces_;
  }

 private:
  std::vector<Piece> pieces_;
  std::vector<bool> is_changed_;  // by version
  std::vector<VersionId> changed_;
};

/// Cost divided by the time since the last use of a version, both in ns; the time is at least 1 ns.
inline double per_staleness(const View& view, VersionId v, Nanos cost) {
  const std::int64_t staleness = (view.now() - view.state(v).last_access).count();
  return static_cast<double>(cost.count()) / static_cast<double>(std::max<std::int64_t>(staleness, 1));
}

}  // namespace tidepool
