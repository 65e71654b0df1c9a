// View of a run for policies: the state of every version, read-only.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// State of one root version during a run. Views (kView) have a state too, of which only `defined` is used.
struct VersionState {
  // Written by the Timeline.
  Nanos ready;                ///< time at which its content is complete (end of the op or copy that made it)
  Nanos last_use;             ///< end of the last op or copy that reads or writes its place
  Nanos host_ready;           ///< time at which the host copy is complete
  Bytes offset;               ///< address of its place
  Bytes held;                 ///< bytes of its place; 0 without a place
  std::uint32_t tag = 0;      ///< Block::tag of its place
  bool placed = false;        ///< has a place on the device
  bool filled = false;        ///< its place has its content
  bool on_host = false;       ///< has a copy on the host
  bool from_host = false;     ///< its content was last brought from the host
  bool in_host_pool = false;  ///< its copy on the host is in the machine's HostPool
  bool in_storage = false;    ///< its copy "on the host" is in the machine's StorageTier instead
  // Written by the Driver.
  bool created = false;        ///< the op that makes it has been reached
  bool wanted = false;         ///< the program may still read it: it is the content of a live buffer
  bool regenerable = false;    ///< can be recomputed from content that exists, or that is itself regenerable
  bool defined = false;        ///< ops can read it; differs from `filled` only for views that must be replayed
  bool pinned = false;         ///< never evictable again
  bool leaving = false;        ///< is being copied to the host, and is dropped when that copy has ended
  std::uint8_t journaled = 0;  ///< bit i: is in the list of changes of policy i
  std::uint32_t locks = 0;     ///< held by running or waiting ops
  std::uint32_t order = 0;     ///< position in the order in which versions became evictable; larger is later
  Nanos last_access;           ///< clock when an op last needed it as an input, or when it was first made
  Nanos cost;                  ///< time to run its producer again (with its views if these must be replayed)
};

/// Versions whose state changed in a way that matters to a policy's index, each once until it is drained.
struct Changes {
  std::vector<VersionId> ids;
  std::uint8_t bit = 0;  ///< in VersionState::journaled
};

/// A read-only view of a run. Cheap to copy.
class View {
 public:
  View(const Trace& trace, const RunSpec& spec, std::vector<VersionState>& states, const Nanos& clock,
       const std::uint32_t& op, Changes& changes)
      : trace_{&trace}, spec_{&spec}, states_{&states}, clock_{&clock}, op_{&op}, changes_{&changes} {}

  const Trace& trace() const { return *trace_; }
  const Machine& machine() const { return spec_->machine; }
  /// Device memory that the run may use.
  Bytes capacity() const { return spec_->capacity; }
  /// Time at which the compute lane is free. With several streams: the lane of the op that the last action precedes.
  Nanos now() const { return *clock_; }
  /// The op of the program that is being prepared or run.
  OpId op() const { return OpId{*op_}; }

  const VersionState& state(VersionId v) const { return (*states_)[v.index()]; }
  bool resident(VersionId v) const { return state(v).filled; }
  /// The op that makes the version has been reached, but the version is not resident: it was dropped or swapped out, or
  /// it is about to be computed.
  bool absent(VersionId v) const { return state(v).created && !state(v).filled; }
  /// The version has content, and is neither locked, nor pinned, nor about to be dropped.
  bool evictable(VersionId v) const {
    const VersionState& s = state(v);
    return s.filled && s.locks == 0 && !s.pinned && !s.leaving;
  }
  /// Evictable, and can be recomputed later, is on the host already or is no longer wanted: kDrop is allowed.
  bool droppable(VersionId v) const {
    const VersionState& s = state(v);
    return evictable(v) && (s.regenerable || s.on_host || !s.wanted);
  }
  Bytes size(VersionId v) const { return trace_->size(v); }

  /// Calls visit(VersionId) for every root version whose evictability, last access, order or cost may have changed
  /// since the last call, each once. Every policy of a chain has its own list. A policy that has an index calls this
  /// when it must answer, to update the index.
  template <class Visit>
  void drain_changes(Visit visit) const {
    for (const VersionId v : changes_->ids) {
      (*states_)[v.index()].journaled &= static_cast<std::uint8_t>(~changes_->bit);
      visit(v);
    }
    changes_->ids.clear();
  }

  /// Calls visit(VersionId) for every root version, other than v, that was read by the producer of `v` or by an op that
  /// made a view of it. May visit a version twice.
  template <class Visit>
  void for_each_parent(VersionId v, Visit visit) const;
  /// Calls visit(VersionId) for every root version, other than v, made by an op that has read v and has been reached.
  template <class Visit>
  void for_each_child(VersionId v, Visit visit) const;

 private:
  const Trace* trace_;
  const RunSpec* spec_;
  std::vector<VersionState>* states_;
  const Nanos* clock_;
  const std::uint32_t* op_;
  Changes* changes_;
};

template <class Visit>
void View::for_each_parent(VersionId v, Visit visit) const {
  const auto of_op = [&](OpId op) {
    for (const Use& use : trace_->uses(op))
      if (use.in.valid() && trace_->root(use.in) != v) visit(trace_->root(use.in));
  };
  if (trace_->version(v).producer.valid()) of_op(trace_->version(v).producer);
  for (const OpId viewer : trace_->viewers(v)) {
    if (viewer.value() > *op_) break;
    of_op(viewer);
  }
}

template <class Visit>
void View::for_each_child(VersionId v, Visit visit) const {
  for (const OpId reader : trace_->readers(v)) {
    if (reader.value() > *op_) break;
    for (const Use& use : trace_->uses(reader))
      if (use.out.valid() && trace_->root(use.out) != v) visit(trace_->root(use.out));
  }
}

}  // namespace tidepool
