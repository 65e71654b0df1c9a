// The driver: walks the program, asks pool and policies, and turns their answers into actions.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simulator/engine/action_device.hpp"
#include "simulator/engine/boundary.hpp"
#include "simulator/engine/confirmation.hpp"
#include "simulator/engine/decisions/decision.hpp"
#include "simulator/engine/loss_tracking.hpp"
#include "simulator/engine/place_users.hpp"
#include "simulator/engine/policy_calls.hpp"
#include "simulator/engine/timeline.hpp"
#include "simulator/plan.hpp"
#include "simulator/policy.hpp"
#include "simulator/pool.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "simulator/state.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The one loop behind every run. Before an op of the program runs, its inputs are brought back and locked, in argument
/// order: first the resident ones, then the absent ones, each with its own absent inputs, recursively. Then its outputs
/// get places, the op runs, and the locks are released. Versions that were brought back only for this, and that the
/// program does not need later, are dropped. If no place is found, the driver drops such versions early, if nothing
/// holds them any more. If there are none, it waits for a copy to the host that is under way. If there is none, it asks
/// the policies in the order of the chain. If none of them answers, it drops outputs that a pending rerun writes again.
/// If there are none, the run is out of memory.
///
/// Content that cannot be recomputed, such as the output of a source, may be lost for good: the program frees it or
/// overwrites it in place, or a draft or before_run() drops it because the program does not read it again and it does
/// not outlive the step. Before such a loss, the driver recomputes the content that could only be recomputed from it.
///
/// If a policy has a whole plan instead, that plan is carried out action by action, and nothing is decided.
///
/// A run that ends well is executed once more by a Confirmation, which only knows its actions. If that fails or has
/// other totals, the run is an error.
class Driver {
 public:
  /// @param policies    at most PolicyCalls::kMost; may be empty
  /// @param matters_to  a run that takes longer is not executed once more; none: no limit
  Driver(const Trace& trace, const RunSpec& spec, Nanos baseline, Pool& pool,
         std::vector<std::unique_ptr<Policy>>& policies, bool may_swap, bool keep_plan,
         std::optional<Nanos> matters_to = {}, OnDecision tell = {});

  Result run();
  /// The failed request, if the run was out of memory or infeasible.
  const std::optional<Shortage>& shortage() const { return shortage_; }

 private:
  /// An op that waits for its inputs: one level of the recursion, which is kept on an explicit stack.
  struct Frame {
    OpId op;
    VersionId target;               // the version to recompute; none for the program's own run
    std::size_t first_pending = 0;  // index in pending_inputs_ of its first absent input
    std::size_t next_pending = 0;
    std::size_t first_temporary = 0;  // index in temporaries_
  };
  struct Ending {
    VersionId version;
    Block block;
    PlaceUsers::Streams users;
  };
  struct IterationCost {
    Nanos search;                           // wall time of policies
    std::int64_t evicting_allocations = 0;  // places found after policies made room
    double free_shares = 0;                 // sum, over these places, of the share of the capacity that was still free
  };
  struct Awaited {
    VersionId version;
    std::size_t policy;  // the policy whose draft asks for it
  };
  struct Stop {  // thrown to end a run; caught in run()
    Outcome outcome;
    std::string message;
  };

  // Program.
  void note_what_begins_on_host(const std::vector<Action>& draft);
  void run_iterations();
  void run_until_settled();
  void run_steps();
  void start_iteration(int iteration);
  void step(std::size_t position);
  void begin(OpId op);
  void start_on_host(BufferId buffer, int iteration);
  void finish_iteration();
  void end_iteration(int iteration);
  void count_iteration();
  void average(Result& result) const;
  Boundary boundary();
  void bring_back_outputs(bool last);
  void alloc_buffer(BufferId buffer);
  void free_buffer(BufferId buffer);
  void end_version(VersionId v);

  // A whole plan.
  void take_whole_plan();
  void start_following(int iteration);
  void follow_iteration();
  void follow(const Action& action);
  void follow_run(OpId op);

  // Bringing back and running.
  void gather(std::size_t base);
  void bring_back(VersionId named);
  void enter(OpId op, VersionId target);
  void run_again(const Frame& frame);
  bool advance(Frame& frame);
  void note_filled(OpId op, VersionId target);
  void execute(OpId op, VersionId target, std::size_t first_temporary);
  /// Whether `v` has a place, from the program or an alloc for the coming run, and no content yet.
  bool has_empty_place(VersionId v) const { return state(v).placed && !state(v).filled; }
  /// Whether `v` has a copy on the host and cannot be recomputed.
  bool only_on_host(VersionId v) const { return state(v).on_host && !state(v).regenerable; }
  bool takes_over(VersionId out, bool again) const;
  void place_outputs(OpId op, bool again);
  void take_over(VersionId parent, VersionId out);
  void place_outputs_apart(OpId op);
  void after_replacing(OpId op);
  void unlock_inputs(OpId op);
  void drop_temporaries(std::size_t first);
  void swap_in(VersionId v);
  bool defined(VersionId named) const;
  VersionId handle(VersionId named) const;

  // Memory.
  std::optional<Block> place(const Request& request);
  Block find_place(VersionId v);
  Request request_for(VersionId v) const;
  /// The first op of the program that has not run yet; none if all have run.
  OpId next_op() const { return issued_ < trace_.ops().size() ? OpId{issued_} : OpId{}; }
  void give_back(VersionId v, const Block& block, const PlaceUsers::Streams& users);
  void give_back_ending(OpId op);
  void anticipate(const Request& request);
  bool ask_policies(const Request& request);
  bool drop_rewritten();
  bool answer(Occasion occasion, std::size_t policy, const Request* request, const std::vector<Action>& wishes);
  bool carry_out(const std::vector<Action>& wishes, bool may_lose, Decision* decision);
  bool carry_out(const Action& wish, bool may_lose);
  [[noreturn]] void refuse_wish(Action wish, std::string_view reason) const;
  Decision decision_of(Occasion occasion, std::size_t policy) const;
  void tell_of(Occasion occasion, std::size_t policy, const Action& action);
  void drop_by_rule(VersionId v);
  void lose_last(std::vector<Action>& wishes) const;
  void lose_unread(VersionId v);
  bool prefetch(VersionId v);
  void start_prefetches(Nanos until);
  void leave_once_copied(VersionId v);
  void settle_front();
  void settle_past();
  void take_place_away(VersionId v, Verb verb);
  std::string off_device_text() const;
  std::string refused_text() const;
  [[noreturn]] void out_of_memory(const Request& request);
  void check_limit();

  // Content that cannot be recomputed.
  bool anchored(VersionId v) const;
  void before_loss(VersionId v);

  // Bookkeeping.
  void emit(Verb verb, std::uint32_t subject, Bytes offset, Bytes size);
  void confirm(Result& result);
  void refuse_if_not_executable();
  void act(Verb verb, std::uint32_t subject, const Block& block = {});
  void lock(VersionId v);
  void unlock(VersionId v);
  void now_evictable(VersionId v);
  Block place_of(VersionId v) const { return {state(v).offset, state(v).held, state(v).tag}; }
  VersionState& state(VersionId v) { return states_[v.index()]; }
  const VersionState& state(VersionId v) const { return states_[v.index()]; }

  const Trace& trace_;
  const RunSpec& spec_;
  const Assumptions& assume_;
  const Nanos baseline_;
  Pool* pool_;
  std::unique_ptr<Pool> brought_;  // the pool that a policy brought
  const bool may_swap_;
  const bool all_stays_;  // no policy and no assumptions: all inputs are resident, and no locks or costs are needed
  std::vector<VersionState> states_;
  Timeline timeline_;
  const std::optional<Nanos> matters_to_;
  ActionDevice device_;
  const OnDecision tell_;  // may be empty
  Confirmation confirmation_;
  Nanos confirmed_;         // wall time in which parts of the plan were executed once more while the run went on
  Nanos clock_;             // the time that policies see
  std::uint32_t op_ = 0;    // the op of the program that is being prepared
  OpId before_;             // the same as an id, for actions
  OpId begun_;              // the op whose inputs have been gathered
  std::size_t issued_ = 0;  // number of ops of the program that have run in this iteration
  std::uint32_t last_order_ = 0;
  std::vector<std::unique_ptr<Policy>>& policies_;
  PolicyCalls calls_;
  LossTracking losses_;
  std::optional<Plan> whole_;  // a policy's plan that is carried out
  std::vector<std::span<const Action>> whole_iterations_;
  std::span<const Action> following_;  // remaining actions of the iteration
  std::vector<std::vector<Action>> drafts_;
  std::vector<std::size_t> next_draft_;
  std::deque<Awaited> awaited_;       // versions that drafts want back early and that did not fit yet, in order
  std::vector<bool> begins_on_host_;  // by buffer: a draft wants its initial content to begin on the host
  std::deque<VersionId> leaving_;     // versions being copied to the host, in the order of the copies' ends
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> pending_inputs_;
  std::vector<VersionId> temporaries_;  // brought back for others; the program does not need them later
  std::vector<VersionId> filled_;       // newly filled by the op just run
  std::vector<VersionId> current_;      // by buffer: its content in the program
  std::vector<bool> started_on_host_;   // by buffer
  std::vector<VersionId> overwritten_;  // in place, by the op that is about to run
  std::vector<VersionId> taken_over_;   // by output of the op about to run: the version whose place it takes, if any
  std::vector<VersionId> scratched_;    // outputs of that op for which a scratch place was found
  std::vector<Block> blocks_;           // likewise: their places
  std::vector<Ending> ending_;          // places that end with the op that is about to run
  PlaceUsers users_;
  std::vector<std::uint32_t> own_reads_;  // by version: reads of the version that it replaces, by its op
  Bytes placed_;                          // bytes of blocks that the pool has given out
  IterationCost cost_;                    // of this iteration
  std::vector<IterationCost> costs_;      // of the earlier iterations
  std::vector<Totals> totals_;            // of the earlier iterations
  Cycle cycle_;
  std::optional<Shortage> shortage_;
  std::vector<Action> wishes_;
};

}  // namespace tidepool
