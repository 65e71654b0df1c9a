// The simulated executor. It applies actions to lanes and memory, and decides nothing.
#pragma once

#include <utility>
#include <vector>

#include "simulator/engine/availability.hpp"
#include "simulator/engine/boundary.hpp"
#include "simulator/engine/counted_memory.hpp"
#include "simulator/engine/host_pool.hpp"
#include "simulator/engine/links.hpp"
#include "simulator/engine/memory_map.hpp"
#include "simulator/machine.hpp"
#include "simulator/plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/state.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Simulated time of a plan, action by action, in issue order. Lanes: one per compute stream, one copy engine each way,
/// and one queue each way for the storage. A lane does one action after the other, and waits for a lane whose result
/// the action needs. A run starts when the host has launched it, its stream is free, its inputs are ready, and the ops
/// that it is ordered after and the last users of its output places have ended. A copy starts when the host has
/// submitted it, its engine is free, its content and its place are ready, and the op before it has ended. If both
/// directions of the link are busy, they slow each other down (Links). The times in the states of versions with copies
/// under way are then lower bounds: the times without that slowdown. Memory is strict: a place is in use from the
/// action that gives it until a drop or free, and the next user of its bytes waits for the last op or copy that touched
/// them. apply() trusts the action; Checker refuses wrong ones. O(uses) per run, O(versions) per kNext, else O(1), plus
/// O(log n) for places whose last use is still under way.
class Timeline {
 public:
  /// An op whose end waits for ops on other devices.
  struct Held {
    Nanos until;       ///< the earliest time of its end
    Nanos alone;       ///< its end without this wait; set when the op runs
    Nanos unhindered;  ///< its start without waits for copies and memory; set when the op runs
  };

  /// @param capacity  of the memory that places without addresses share
  Timeline(const Trace& trace, const Machine& machine, const Assumptions& assume, std::vector<VersionState>& states,
           Bytes capacity = kNoLimit);

  void apply(const Action& action);
  /// Sets, by op, the waits of a job's rank for other devices. `ops` must outlive the timeline. Call before the first
  /// action.
  void hold(std::vector<Held>& ops) { held_ops_ = &ops; }

  /// Time at which the stream of an op is free; for no op: at which all streams are.
  Nanos now(OpId before) const { return before.valid() ? streams_[trace_.op(before).stream.index()] : latest(); }
  /// Time at which a stream has finished all of its work so far.
  Nanos done(StreamId stream) const { return streams_[stream.index()]; }
  /// Whether it is certain that the latest copy of `v` to the host ends by `time`; false if its end is not known yet.
  bool has_left(VersionId v, Nanos time);
  /// Whether the host, or the storage beyond it, has memory for `v` now.
  bool fits_on_host(VersionId v) const;
  Bytes held_on_host() const { return host_pool_.in_use(); }
  Bytes held_in_storage() const { return storage_.in_use(); }
  /// Bytes held by versions now.
  Bytes held() const { return held_; }
  /// The cost of the iteration so far; makespan is the time from its start to the last end of any lane. Peaks and the
  /// number of actions include earlier iterations.
  Totals totals() const;
  /// The state in which the next iteration begins; none of its runs has been applied yet. O(ops + buffers).
  Boundary boundary();
  /// Overhead of the iteration so far. With one stream and no launch time: recomputation and Stall::compute. Otherwise:
  /// the time beyond `baseline`, since lanes wait for each other even in a step without policies.
  Nanos overhead(Nanos baseline) const;
  std::int64_t recompute_count() const { return totals_.recompute_count; }
  const Stall& stall() const { return totals_.stall; }
  /// Number of pieces of copies in a direction of the link; 0 if copies neither slow anything down nor are cut.
  std::uint32_t pieces(Direction direction) const { return links_.added(direction); }
  /// Beginning and end of a piece, by its number in its direction, from 1. Apply nothing afterwards.
  std::pair<Nanos, Nanos> piece_span(Direction direction, std::uint32_t number) {
    if (!links_.ended(direction, number)) links_.drain();
    return links_.span(direction, number);
  }

 private:
  void run(OpId op);
  Nanos unhindered_start(OpId id) const;
  void give_place(VersionId v, const Action& action);
  void end_place(VersionId v);
  void leave_place(VersionId v, const Moment& free_from);
  void hold(Bytes size);
  Moment claim(Bytes offset, Bytes size);
  void let_go(Bytes offset, Bytes size, const Moment& time);
  Nanos latest() const;
  Nanos earliest_stream() const;
  Nanos drained() const;
  void swap_out(VersionId v, Nanos issued);
  void write_to_storage(VersionId v, Nanos issued);
  void read_from_storage(VersionId v, const Action& action, Nanos issued);
  void swap_in(VersionId v, const Action& action, Nanos issued);
  std::uint32_t add_copy(Direction direction, const Moment& after, Nanos time);
  void await(VersionId v, Nanos& stream);
  void leave_host(VersionId v);
  void forget_past();
  void next_iteration();
  /// Notes whether an action that could begin at `time` must wait for the host to launch or submit it.
  void note_host(Nanos time) { host_delayed_ |= host_ > time; }

  /// The copies under way on which a version's times depend; used only if `disturbed_`.
  struct UnderWay {
    Copies ready, last_use;
    std::uint32_t to_host = 0;  // the latest copy to the host
  };

  const Trace& trace_;
  const Machine& machine_;
  const bool copy_on_write_;
  const bool address_reuse_matters_;  // several streams: every freed place may be reused by another one
  std::vector<VersionState>& states_;
  std::vector<Nanos> streams_;
  Nanos h2d_, d2h_;                   // when each direction is free; a lower bound if `disturbed_`
  Nanos host_;                        // when the host has launched all ops so far
  bool host_delayed_ = false;         // an action has waited for it in this iteration
  bool host_delayed_before_ = false;  // ... in the previous iteration
  HostPool host_pool_;
  StorageTier storage_;
  Links links_;
  std::vector<Held>* held_ops_ = nullptr;
  const bool slows_kernels_;         // copies slow kernels down
  const bool disturbed_;             // times of copies are found by links_: see needs_links()
  std::vector<UnderWay> under_way_;  // by version; empty unless disturbed_
  Nanos iteration_start_;
  MemoryMap map_;
  Availability free_from_;     // keyed by the memory to which addresses are mapped
  CountedMemory counted_;      // the same for places without addresses
  std::vector<Nanos> op_end_;  // only where the trace has order edges
  std::vector<bool> ran_;
  std::size_t next_order_ = 0;
  struct Scratch {
    VersionId version;
    Bytes offset, size;
    Moment free_from;  // only for bytes without addresses
  };
  std::vector<Scratch> scratch_;      // for the next run
  std::vector<Moment> piece_places_;  // of the copy that is being cut
  Bytes held_, reserved_;
  Totals totals_;
};

}  // namespace tidepool
