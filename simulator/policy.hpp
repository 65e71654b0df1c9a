// The interface of policies, which decide which versions are kept, swapped or recomputed. A policy is one .cpp in
// policies/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulator/plan.hpp"
#include "simulator/pool.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/state.hpp"
#include "traces/trace.hpp"

namespace tidepool {

class OrderedStep;

/// A policy only decides; the driver carries its decisions out. Override only the functions that the policy needs.
/// Decisions are actions of these kinds:
///   kDrop v     give up a place; v must be droppable (see View). Drafts and before_run() may also drop evictable
///               content that the program does not read again and that does not outlive the step; it is lost
///   kSwapOut v  copy to the host; the driver drops v once the copy has ended. Nothing happens if the host has no room
///   kSwapIn v   copy back from the host early (prefetch)
///   kAwait v    let the program wait until the copies of v under way have ended, whether or not it needs them
///   kRun op     run an op again early, after bringing back its inputs; only in drafts and in before_run()
/// The driver fills in `offset` and `size`. A policy sees the run through a View.
class Policy {
 public:
  virtual ~Policy() = default;

  /// Another order for the ops of the step; null: the recorded one. Asked once, before plan(). From then on, plan()
  /// included, the step has this order. In a chain of policies, the first order that is not null counts.
  virtual std::shared_ptr<const OrderedStep> reorder(const Trace&, const RunSpec&) { return {}; }

  /// Offline: a draft, made once before the run, sorted by `before`, and followed in every iteration. Other actions
  /// happen on demand. A kSwapIn that does not fit is tried again, in the order of the draft, until it fits or the
  /// program needs the version. If the version is still being copied to the host, kSwapIn cancels its drop. A kSwapOut
  /// of an initial version before op 0 says that the version is on the host when the step begins: its idle interval
  /// began in the step before.
  virtual std::vector<Action> plan(const Trace&, const RunSpec&) { return {}; }
  /// A pool to use instead of the run's pool, for policies that also decide addresses; null for all others. Asked once,
  /// after the draft.
  virtual std::unique_ptr<Pool> bring_pool() { return {}; }

  /// An iteration begins: every version is in its first state. Called once more for every further iteration.
  virtual void start(const View&) {}

  /// A counter for policies that learn from iterations: it grows whenever the policy will decide differently in the
  /// next iteration. While it grows, a run has not settled.
  virtual std::int64_t changes_of_mind() const { return 0; }

  /// Online: `request` does not fit. Appends evictions; called again while it still does not fit. Appending nothing
  /// means "no answer": the next policy of the chain is asked. If no policy answers, and the driver has no place to
  /// drop by its own rules, the run is out of memory.
  virtual void make_room(const View&, const Request&, std::vector<Action>&) {}

  /// Online: op is about to run for the first time (prefetch, early eviction).
  virtual void before_run(const View&, OpId, std::vector<Action>&) {}

  /// Whether the driver calls before_place(). Asked once, after the draft.
  virtual bool anticipates() const { return false; }
  /// Online, for early eviction: a place is about to be requested. The request may fit without evictions.
  virtual void before_place(const View&, const Request&, std::vector<Action>&) {}

  /// Whether the driver calls dropped() and computed().
  virtual bool watches() const { return false; }
  /// A version lost its content on the device: it was dropped, freed or overwritten in place.
  virtual void dropped(const View&, VersionId) {}
  /// An op ran, or a copy from the host was issued. These root versions had no content before, and have it now. After a
  /// rerun, the version for which the op ran comes last.
  virtual void computed(const View&, std::span<const VersionId>) {}

  /// Number of evaluated costs, for the report.
  virtual std::int64_t cost_evaluations() const { return 0; }
};

}  // namespace tidepool
