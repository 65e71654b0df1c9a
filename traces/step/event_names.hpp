// Names of the instants of a trace that has no ops: the events of the allocator.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "traces/import/torch_snapshot.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A trace, and the history that it was made from if it was a snapshot.
struct TraceWithHistory {
  Trace trace;
  std::optional<SnapshotHistory> history = {};
};

/// Reads a trace in any form, as load_trace().
TraceWithHistory load_with_history(const std::string& path);

/// Numbers the events of a snapshot's history or, without one, the allocations and frees of the trace.
class EventNames {
 public:
  /// @param history  of a snapshot; null: there is none
  EventNames(const Trace& trace, const SnapshotHistory* history);

  std::size_t count() const { return count_; }
  /// The number of the event that made a record of the trace, from 1.
  std::size_t number(std::size_t record) const;
  /// "at event 2 of 5, 0.4 s after the first": the event after which there are `records` records; "before the first
  /// event" if there are none, "when the snapshot was taken" if there are no events.
  std::string after(std::size_t records) const;

 private:
  const SnapshotHistory* history_;
  std::size_t count_;
};

}  // namespace tidepool
