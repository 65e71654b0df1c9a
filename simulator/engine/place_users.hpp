// The streams that have used the places of versions.
#pragma once

#include <algorithm>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// By version: the streams other than its buffer's own that have used its place. A pool must know them when the place
/// is given back. Empty, and free of cost, for a step of one stream.
class PlaceUsers {
 public:
  using Streams = std::vector<StreamId>;  ///< sorted

  explicit PlaceUsers(const Trace& trace)
      : trace_{trace}, users_(trace.data().streams.size() > 1 ? trace.versions().size() : 0) {}

  Streams of(VersionId v) const { return users_.empty() ? Streams{} : users_[v.index()]; }
  /// Call when `v` has a new place.
  void clear(VersionId v) {
    if (!users_.empty()) users_[v.index()].clear();
  }
  /// Call when `to` takes over the place of `from`.
  void take_over(VersionId from, VersionId to) {
    if (!users_.empty()) users_[to.index()].swap(users_[from.index()]);
  }
  /// Call when `op` runs: its stream uses the places of its inputs and outputs.
  void note_run(OpId op) {
    if (users_.empty()) return;
    for (const Use& use : trace_.uses(op)) {
      if (use.in.valid()) note(users_[trace_.root(use.in).index()], trace_.root(use.in), op);
      if (use.out.valid() && use.access != Access::kView) note(users_[use.out.index()], use.out, op);
    }
  }
  /// Adds the stream of `op` to `users`, the users of a place that `v` no longer has.
  void note_run(Streams& users, VersionId v, OpId op) const {
    if (!users_.empty()) note(users, v, op);
  }

 private:
  void note(Streams& users, VersionId v, OpId op) const {
    const StreamId stream = trace_.op(op).stream;
    if (trace_.buffer(trace_.version(v).buffer).stream == stream) return;
    const auto at = std::lower_bound(users.begin(), users.end(), stream);
    if (at == users.end() || *at != stream) users.insert(at, stream);
  }

  const Trace& trace_;
  std::vector<Streams> users_;
};

}  // namespace tidepool
