#include "simulator/engine/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "simulator/engine/iteration_watch.hpp"

namespace tidepool {
namespace {

/// By version: how often the op that makes it reads the version that it replaces.
std::vector<std::uint32_t> own_reads(const Trace& trace) {
  std::vector<std::uint32_t> own(trace.versions().size()), reads(trace.versions().size());
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const OpId op{i};
    // An op may read and replace thousands of buffers: count all reads at once.
    for (const Use& use : trace.uses(op))
      if (use.in.valid()) ++reads[trace.root(use.in).index()];
    for (const VersionId made : trace.made(op))
      if (const VersionId parent = trace.version(made).parent; parent.valid())
        own[made.index()] = reads[parent.index()];
    for (const Use& use : trace.uses(op))
      if (use.in.valid()) reads[trace.root(use.in).index()] = 0;
  }
  return own;
}

std::string cannot_be_executed(const PlanError& error) {
  return fmt::format("the plan of this run cannot be executed: {}", error.what());
}

}  // namespace

Driver::Driver(const Trace& trace, const RunSpec& spec, Nanos baseline, Pool& pool,
               std::vector<std::unique_ptr<Policy>>& policies, bool may_swap, bool keep_plan,
               std::optional<Nanos> matters_to, OnDecision tell)
    : trace_{trace},
      spec_{spec},
      assume_{spec.assume},
      baseline_{baseline},
      pool_{&pool},
      may_swap_{may_swap},
      all_stays_{policies.empty() && spec.assume.name.empty()},
      timeline_{trace, spec.machine, spec.assume, states_, spec.capacity},
      matters_to_{matters_to},
      device_{spec.capacity, [this](Verb verb, std::int64_t pages, Bytes address,
                                    Bytes size) { emit(verb, static_cast<std::uint32_t>(pages), address, size); }},
      tell_{std::move(tell)},
      confirmation_{trace, spec, keep_plan},
      clock_{spec.assume.clock_start},
      policies_{policies},
      calls_{policies, trace, spec, states_, clock_, op_},
      losses_{trace, states_, op_, calls_},
      drafts_(policies.size()),
      next_draft_(policies.size()),
      begins_on_host_(trace.buffers().size()),
      current_(trace.buffers().size()),
      started_on_host_(trace.buffers().size()),
      users_{trace},
      own_reads_{all_stays_ ? std::vector<std::uint32_t>(trace.versions().size()) : own_reads(trace)} {}

Result Driver::run() {
  const auto begin_time = std::chrono::steady_clock::now();
  Result result;
  result.baseline = baseline_;
  try {
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      drafts_[i] = policies_[i]->plan(trace_, spec_);
      note_what_begins_on_host(drafts_[i]);
      if (std::unique_ptr<Pool> pool = policies_[i]->bring_pool()) brought_ = std::move(pool), pool_ = brought_.get();
    }
    if (policies_.size() == 1) take_whole_plan();
    pool_->start(trace_, spec_.capacity, device_);
    calls_.start_run();
    spec_.steady ? run_until_settled() : run_iterations();
  } catch (const Stop& stop) {
    result.outcome = stop.outcome;
    result.message = stop.message;
    count_iteration();
    cycle_ = {
        .lead_in = static_cast<int>(totals_.size()) - 1, .first_iteration = {}, .start_on_host = cycle_.start_on_host};
  }
  average(result);
  for (const auto& policy : policies_) result.cost_evaluations += policy->cost_evaluations();
  result.plan_time =
      Nanos{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin_time}.count()} - confirmed_;
  confirm(result);
  return result;
}

void Driver::run_steps() {
  if (whole_) return follow_iteration();
  for (std::size_t i = 0; i < trace_.events().size(); ++i) step(i);
}

void Driver::run_iterations() {
  for (int iteration = 0; iteration < spec_.iterations; ++iteration) {
    start_iteration(iteration);
    run_steps();
    if (iteration + 1 < spec_.iterations)
      finish_iteration();
    else if (!whole_)
      bring_back_outputs(true);
    count_iteration();
  }
  cycle_.lead_in = spec_.iterations - 1;
}

/// Runs iterations until the next one would begin in the same state as an earlier one (see cycle_of()), or as many as
/// RunSpec::iterations allows. The iterations from the earlier state on are the cycle. If no state recurs, the cycle is
/// the result of longest_cycle(); if this is none either, the last half of the iterations, but at least two of them,
/// stands for it.
void Driver::run_until_settled() {
  start_iteration(0);
  std::vector<Boundary> boundaries{boundary()};
  for (int iteration = 1;; ++iteration) {
    if (iteration > 1 && !IterationWatch::proceed(totals_)) throw Stop{Outcome::kError, "interrupted"};
    run_steps();
    finish_iteration();
    count_iteration();
    confirmation_.hold();
    start_iteration(iteration);
    boundaries.push_back(boundary());
    cycle_.iterations = cycle_of(boundaries, totals_);
    if (cycle_.iterations == 0 && iteration < spec_.iterations) {
      confirmation_.accept_held();
      continue;
    }
    confirmation_.drop_held();  // the next iteration is not part of the plan
    if (cycle_.iterations == 0) cycle_.iterations = longest_cycle(boundaries);
    cycle_.settled = cycle_.iterations > 0;
    if (!cycle_.settled) cycle_.iterations = std::min(std::max((iteration + 1) / 2, 2), iteration);
    cycle_.lead_in = iteration - cycle_.iterations;
    return;
  }
}

Boundary Driver::boundary() {
  Boundary boundary = timeline_.boundary();
  const Totals before_ops = timeline_.totals();  // allocating the initial places may take time
  boundary.state.insert(boundary.state.end(), {before_ops.makespan.count(), before_ops.stall.memory.count()});
  for (const auto& policy : policies_) boundary.state.push_back(policy->changes_of_mind());
  return boundary;
}

void Driver::count_iteration() {
  totals_.push_back(timeline_.totals());
  cost_.search = calls_.take_time();
  costs_.push_back(cost_);
}

/// Fills in times and counts: means over the cycle.
void Driver::average(Result& result) const {
  result.cycle = cycle_;
  result.totals = mean_of_last(totals_, cycle_.iterations);
  result.cycle.first_iteration = totals_.front().makespan;
  IterationCost sum;
  for (auto cost = costs_.end() - cycle_.iterations; cost != costs_.end(); ++cost) {
    sum.search += cost->search;
    sum.evicting_allocations += cost->evicting_allocations;
    sum.free_shares += cost->free_shares;
  }
  result.evicting_allocations = rounded_mean(sum.evicting_allocations, cycle_.iterations);
  if (sum.evicting_allocations > 0)
    result.eviction_fragmentation = sum.free_shares / static_cast<double>(sum.evicting_allocations);
  if (spec_.count_search) result.search = Nanos{rounded_mean(sum.search.count(), cycle_.iterations)};
}

/// Notes initial content that begins on the host. A draft asks for this by a swap-out before the first op.
void Driver::note_what_begins_on_host(const std::vector<Action>& draft) {
  if (!may_swap_ || assume_.pin_sources) return;
  for (const Action& action : draft) {
    if (action.before.valid() && action.before.value() > 0) break;
    if (action.verb != Verb::kSwapOut || action.subject >= trace_.versions().size()) continue;
    const BufferId buffer = trace_.versions()[action.subject].buffer;
    if (trace_.buffer(buffer).born_before && trace_.first_version(buffer).value() == action.subject)
      begins_on_host_[buffer.index()] = true;
  }
}

void Driver::start_iteration(int iteration) {
  before_ = trace_.ops().empty() ? OpId{} : OpId{0};
  op_ = 0;
  issued_ = 0;
  cost_ = {};
  if (iteration > 0) end_iteration(iteration);
  if (whole_) return start_following(iteration);
  begun_ = OpId{};
  for (std::size_t i = 0; i < current_.size(); ++i) {
    if (!trace_.buffers()[i].born_before) continue;
    const VersionId v = current_[i] = trace_.first_version(BufferId{i});
    VersionState& s = state(v);
    s.created = s.wanted = s.defined = true;
    s.pinned = assume_.pin_sources;
    if (iteration > 0) s.last_access = clock_;                    // its age counts from the start of the iteration
    if (iteration > 0 && trace_.buffers()[i].outlives) continue;  // it was carried over, in its place or on the host
    const Request request = request_for(v);
    if (begins_on_host_[i]) {
      start_on_host(BufferId{i}, iteration);
    } else if (const std::optional<Block> block = place(request)) {
      act(Verb::kAlloc, v.value(), *block);
      now_evictable(v);
    } else if (may_swap_) {
      start_on_host(BufferId{i}, iteration);
    } else {
      out_of_memory(request);
    }
  }
}

/// Notes that the content of `buffer` is only on the host when `iteration` begins.
void Driver::start_on_host(BufferId buffer, int iteration) {
  started_on_host_[buffer.index()] = true;
  if (iteration == 0) cycle_.start_on_host += trace_.buffer(buffer).size;
}

/// Does what is left after the last op of an iteration that another one follows: brings outputs back, and drops
/// versions when their copies to the host have ended.
void Driver::finish_iteration() {
  if (whole_) return;
  drop_temporaries(0);
  bring_back_outputs(false);
  while (!leaving_.empty()) settle_front();
}

void Driver::end_iteration(int iteration) {
  std::vector<Ending> ended;  // the pool may release their memory only after all have ended
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const VersionId v{i};
    const BufferId buffer = trace_.version(v).buffer;
    const bool stays =
        trace_.buffer(buffer).born_before && trace_.buffer(buffer).outlives && current_[buffer.index()] == v;
    if (states_[i].placed && !stays) ended.push_back({v, place_of(v), users_.of(v)});
    if (stays) users_.take_over(v, trace_.first_version(buffer));
  }
  act(Verb::kNext, static_cast<std::uint32_t>(iteration));
  for (const Ending& each : ended) give_back(each.version, each.block, each.users);
  losses_.start_iteration();
  std::fill(next_draft_.begin(), next_draft_.end(), 0);
  awaited_.clear();
  calls_.forget_changes();
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (trace_.versions()[i].kind != VersionKind::kView) calls_.changed(VersionId{i});
  calls_.start_iteration();
}

void Driver::step(std::size_t position) {
  const Event& event = trace_.events()[position];
  switch (event.kind) {
    case EventKind::kAlloc:
      if (const OpId op = trace_.allocated_for(position); op.valid() && begun_ != op) {
        // The op may read its new buffer before it writes to it. Then the buffer needs a place before inputs are
        // gathered.
        for (std::size_t i = position; trace_.events()[i].kind == EventKind::kAlloc; ++i)
          if (const BufferId b{trace_.events()[i].id};
              trace_.version(trace_.first_version(b)).kind == VersionKind::kInitial)
            alloc_buffer(b);
        begin(op);
      }
      alloc_buffer(BufferId{event.id});
      break;
    case EventKind::kFree:
      free_buffer(BufferId{event.id});
      break;
    case EventKind::kRun:
      if (begun_ != OpId{event.id}) begin(OpId{event.id});
      if (trace_.op(OpId{event.id}).kind == OpKind::kHostWait) pool_->synchronized(next_op(), clock_);
      start_prefetches(clock_ + trace_.op(OpId{event.id}).duration);
      execute(OpId{event.id}, VersionId{}, temporaries_.size());
      issued_ = event.id + 1;
      break;
    case EventKind::kForget:
      if (assume_.copy_on_write) end_version(VersionId{event.id});
      break;
  }
}

void Driver::begin(OpId op) {
  begun_ = before_ = op;
  op_ = op.value();
  if (all_stays_) return;
  if (!leaving_.empty()) settle_past();
  for (std::size_t i = 0; i < policies_.size(); ++i) {
    std::vector<Action>& draft = drafts_[i];
    wishes_.clear();
    while (next_draft_[i] < draft.size() && draft[next_draft_[i]].before <= op) {
      const Action& drafted = draft[next_draft_[i]++];
      if (drafted.verb == Verb::kSwapIn && drafted.subject < trace_.versions().size())
        awaited_.push_back({VersionId{drafted.subject}, i});
      else
        wishes_.push_back(drafted);
    }
    const std::size_t drafted = wishes_.size();
    calls_.ask(i, [&](Policy& policy, const View& view) { policy.before_run(view, op, wishes_); });
    if (wishes_.empty()) continue;
    std::vector<Action> wishes{wishes_};
    lose_last(wishes);
    answer(wishes_.size() == drafted ? Occasion::kPlan : Occasion::kBeforeRun, i, nullptr, wishes);
  }
  start_prefetches(clock_);
  for (const Use& use : trace_.uses(op)) {
    if (!use.out.valid()) continue;
    state(use.out).created = true;
    VersionState& root = state(trace_.root(use.out));
    if (use.access != Access::kView) root.cost = trace_.op(op).duration;
  }
  if (assume_.replay_views) {
    const std::span uses = trace_.uses(op);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].access != Access::kView) continue;
      const VersionId root = trace_.root(uses[i].out);
      const bool counted = std::any_of(
          uses.begin(), uses.begin() + static_cast<std::ptrdiff_t>(i),
          [&](const Use& earlier) { return earlier.access == Access::kView && trace_.root(earlier.out) == root; });
      if (counted) continue;
      state(root).cost += trace_.op(op).duration;
      calls_.changed(root);
    }
  }
  enter(op, VersionId{});
  gather(frames_.size() - 1);
}

void Driver::alloc_buffer(BufferId buffer) {
  const VersionId v = current_[buffer.index()] = trace_.first_version(buffer);
  VersionState& s = state(v);
  if (s.wanted) return;  // step() has allocated the buffer already, before the op's inputs were gathered
  s.wanted = true;
  act(Verb::kAlloc, v.value(), find_place(v));
  if (!s.filled) return;
  s.created = true;
  s.pinned = assume_.pin_sources;
  now_evictable(v);
}

void Driver::free_buffer(BufferId buffer) {
  VersionId v = current_[buffer.index()];
  if (!assume_.copy_on_write) return end_version(v);
  for (; v.valid(); v = trace_.version(v).parent)
    if (state(v).wanted) end_version(v);
}

void Driver::end_version(VersionId v) {
  VersionState& s = state(v);
  s.wanted = false;
  calls_.changed(v);
  if (s.pinned) return;
  s.leaving = false;
  const bool loses = anchored(v);
  if (loses) losses_.next(), before_loss(v);
  if (s.placed)
    take_place_away(v, Verb::kFree);
  else if (s.on_host)
    act(Verb::kFree, v.value());
  if (loses) losses_.next(), losses_.after(v);
}

/// Brings back outputs that must be on the device at the end. Content that began on the host may end there. In a steady
/// run or a run of several iterations, any output may end on the host.
/// @param last  whether the run ends with this iteration
void Driver::bring_back_outputs(bool last) {
  before_ = OpId{};
  for (const VersionId named : trace_.outputs()) {
    const VersionId root = trace_.root(named);
    const bool may_stay_on_host =
        !last || spec_.iterations > 1 || started_on_host_[trace_.version(root).buffer.index()];
    if (may_stay_on_host && state(root).on_host && !state(root).filled) continue;
    if (!defined(named)) bring_back(named);
    if (!may_stay_on_host) state(root).leaving = false;  // a copy under way must not drop it
    state(root).pinned = true;
    calls_.changed(root);
  }
}

/// Executes the plan again if the run ended well and is not longer than matters_to_. plan_time does not include the
/// time for this, nor the time for parts of the plan that emit() has executed while the run went on. (If a policy has a
/// whole plan, each of its actions is executed before it is followed, and this counts.)
void Driver::confirm(Result& result) {
  try {
    const bool matters = !matters_to_ || result.totals.makespan <= *matters_to_;
    if (result.outcome == Outcome::kOk && matters) confirmation_.finish(totals_);
  } catch (const PlanError& error) {
    result.outcome = Outcome::kError;
    result.message = cannot_be_executed(error);
  }
  result.realised = confirmation_.take_plan(cycle_.iterations);
}

/// Ends the run with an error if its actions so far cannot be executed.
void Driver::refuse_if_not_executable() {
  try {
    confirmation_.execute();
  } catch (const PlanError& error) {
    throw Stop{Outcome::kError, cannot_be_executed(error)};
  }
}

void Driver::emit(Verb verb, std::uint32_t subject, Bytes offset, Bytes size) {
  const Action& action = confirmation_.add(verb, before_, subject, offset, size);
  if (whole_) {
    refuse_if_not_executable();
  } else if (confirmation_.full()) {
    const auto begin = std::chrono::steady_clock::now();
    refuse_if_not_executable();
    confirmed_ += Nanos{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin}.count()};
  }
  timeline_.apply(action);
  clock_ = timeline_.now(before_);
}

void Driver::act(Verb verb, std::uint32_t subject, const Block& block) {
  emit(verb, subject, block.offset, block.size);
  if (verb != Verb::kAlloc && verb != Verb::kSwapIn) return;
  states_[subject].tag = block.tag;
  users_.clear(VersionId{subject});
}

void Driver::lock(VersionId v) {
  VersionState& s = state(v);
  if (s.locks++ == 0) {
    s.leaving = false;
    calls_.changed(v);
  }
}

void Driver::unlock(VersionId v) {
  if (--state(v).locks == 0 && state(v).filled) calls_.changed(v);
}

void Driver::now_evictable(VersionId v) {
  state(v).order = ++last_order_;
  state(v).defined = true;
  calls_.changed(v);
}

}  // namespace tidepool
