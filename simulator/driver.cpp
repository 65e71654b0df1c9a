#include "simulator/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tidepool {

Driver::Driver(const Trace& trace, const RunSpec& spec, Nanos baseline, Pool& pool,
               std::vector<std::unique_ptr<Policy>>& policies, bool may_swap, bool keep_plan)
    : trace_{trace},
      spec_{spec},
      assume_{spec.assume},
      baseline_{baseline},
      pool_{&pool},
      policies_{policies},
      may_swap_{may_swap},
      keep_plan_{keep_plan},
      all_stays_{policies.empty() && spec.assume.name.empty()},
      timeline_{trace, spec.machine, spec.assume, states_},
      clock_{spec.assume.clock_start},
      drafts_(policies.size()),
      next_draft_(policies.size()),
      begins_on_host_(trace.buffers().size()),
      current_(trace.buffers().size()),
      started_on_host_(trace.buffers().size()),
      users_(trace.data().streams.size() > 1 ? trace.versions().size() : 0),
      lost_(trace.versions().size()),
      own_reads_(trace.versions().size()),
      told_(trace.ops().size()) {
  if (!all_stays_) count_own_reads();
  for (std::size_t i = 0; i < policies_.size(); ++i) {
    changes_[i].bit = static_cast<std::uint8_t>(1u << i);
    all_journals_ |= changes_[i].bit;
    if (policies_[i]->watches()) watching_ |= changes_[i].bit;
  }
}

Result Driver::run() {
  const auto begin_time = std::chrono::steady_clock::now();
  Result result;
  result.baseline = baseline_;
  try {
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      drafts_[i] = policies_[i]->plan_run(trace_, spec_);
      note_what_begins_on_host(drafts_[i]);
      if (std::unique_ptr<Pool> pool = policies_[i]->bring_pool()) brought_ = std::move(pool), pool_ = brought_.get();
      if (policies_[i]->anticipates()) anticipating_ |= changes_[i].bit;
    }
    pool_->start(trace_, spec_.capacity, *this);
    for (std::size_t i = 0; i < policies_.size(); ++i) policies_[i]->start(view(i));
    for (int iteration = 0; iteration < spec_.iterations; ++iteration) {
      start_iteration(iteration);
      for (std::size_t i = 0; i < trace_.steps().size(); ++i) step(i);
    }
    bring_back_outputs(true);
  } catch (const Stop& stop) {
    result.outcome = stop.outcome;
    result.message = stop.message;
  }
  result.totals = timeline_.totals();
  result.realised = std::move(plan_);
  for (const auto& policy : policies_) result.cost_evaluations += policy->cost_evaluations();
  result.evicting_allocations = evicting_allocations_;
  if (evicting_allocations_ > 0)
    result.eviction_fragmentation = free_shares_ / static_cast<double>(evicting_allocations_);
  if (spec_.count_search) result.search = search_;
  result.plan_time = Nanos{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin_time}.count()};
  return result;
}

/// A draft that swaps content from before the step out before the first op wants it to be on the host already.
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
  search_ = Nanos{};
  if (iteration > 0) end_iteration(iteration);
  begun_ = OpId{};
  for (std::size_t i = 0; i < current_.size(); ++i) {
    if (!trace_.buffers()[i].born_before) continue;
    const VersionId v = current_[i] = trace_.first_version(BufferId{i});
    VersionState& s = state(v);
    s.created = s.wanted = s.defined = true;
    s.pinned = assume_.pin_sources;
    if (iteration > 0 && trace_.buffers()[i].outlives) continue;  // carried over where it was
    const Request request = request_for(v);
    if (begins_on_host_[i]) {
      started_on_host_[i] = true;
    } else if (const std::optional<Block> block = place(request)) {
      act(Verb::kAlloc, v.value(), *block);
      now_evictable(v);
    } else if (may_swap_) {
      started_on_host_[i] = true;
    } else {
      out_of_memory(request);
    }
  }
}

void Driver::end_iteration(int iteration) {
  drop_temporaries(0);
  bring_back_outputs(false);
  while (!leaving_.empty()) settle_front();
  std::vector<Ending> ended;  // for the pool, which may give their memory back, only when they have
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const VersionId v{i};
    const BufferId buffer = trace_.version(v).buffer;
    const bool stays =
        trace_.buffer(buffer).born_before && trace_.buffer(buffer).outlives && current_[buffer.index()] == v;
    if (states_[i].placed && !stays) ended.push_back({v, place_of(v), users_of(v)});
    if (stays && !users_.empty()) users_[trace_.first_version(buffer).index()].swap(users_[i]);
  }
  act(Verb::kNext, static_cast<std::uint32_t>(iteration));
  for (const Ending& each : ended) give_back(each.version, each.block, each.users);
  std::fill(lost_.begin(), lost_.end(), false);
  std::fill(next_draft_.begin(), next_draft_.end(), 0);
  awaited_.clear();
  for (Changes& changes : changes_) changes.ids.clear();
  anything_dropped_ = false;
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (trace_.versions()[i].kind != VersionKind::kView) changed(VersionId{i});
  for (std::size_t i = 0; i < policies_.size(); ++i) search([&] { policies_[i]->start(view(i)); });
}

void Driver::step(std::size_t position) {
  const Step& step = trace_.steps()[position];
  switch (step.kind) {
    case StepKind::kAlloc:
      if (const OpId op = trace_.allocated_for(position); op.valid() && begun_ != op) {
        // An op may read what was allocated for it as it came: that must be there before its inputs are gathered.
        for (std::size_t i = position; trace_.steps()[i].kind == StepKind::kAlloc; ++i)
          if (const BufferId b{trace_.steps()[i].id};
              trace_.version(trace_.first_version(b)).kind == VersionKind::kInitial)
            alloc_buffer(b);
        begin(op);
      }
      alloc_buffer(BufferId{step.id});
      break;
    case StepKind::kFree:
      free_buffer(BufferId{step.id});
      break;
    case StepKind::kRun:
      if (begun_ != OpId{step.id}) begin(OpId{step.id});
      if (trace_.op(OpId{step.id}).kind == OpKind::kHostWait) pool_->synchronized(next_op(), clock_);
      start_prefetches(clock_ + trace_.op(OpId{step.id}).duration);
      execute(OpId{step.id}, VersionId{}, temporaries_.size());
      issued_ = step.id + 1;
      break;
    case StepKind::kForget:
      if (assume_.copy_on_write) end_version(VersionId{step.id});
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
        awaited_.push_back(VersionId{drafted.subject});
      else
        wishes_.push_back(drafted);
    }
    search([&] { policies_[i]->before_run(view(i), op, wishes_); });
    if (wishes_.empty()) continue;
    std::vector<Action> wishes{wishes_};
    lose_last(wishes);
    carry_out(wishes, true);
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
      changed(root);
    }
  }
  enter(op, VersionId{});
  gather(frames_.size() - 1);
}

void Driver::alloc_buffer(BufferId buffer) {
  const VersionId v = current_[buffer.index()] = trace_.first_version(buffer);
  VersionState& s = state(v);
  if (s.wanted) return;  // done ahead of its step
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
  changed(v);
  if (s.pinned) return;
  s.leaving = false;
  const bool loses = anchored(v);
  if (loses) ++loss_, before_loss(v);
  if (s.placed)
    take_place_away(v, Verb::kFree);
  else if (s.on_host)
    act(Verb::kFree, v.value());
  if (loses) ++loss_, after_loss(v);
}

/// What the step hands on must be there when it ends. What was on the host when it began may be there again, and so may
/// anything if the step is followed by another.
void Driver::bring_back_outputs(bool last) {
  before_ = OpId{};
  for (const VersionId named : trace_.outputs()) {
    const VersionId root = trace_.root(named);
    const bool may_stay_on_host =
        !last || spec_.iterations > 1 || started_on_host_[trace_.version(root).buffer.index()];
    if (may_stay_on_host && state(root).on_host && !state(root).filled) continue;
    if (!defined(named)) bring_back(named);
    state(root).pinned = true;
    changed(root);
  }
}

void Driver::emit(Action action) {
  timeline_.apply(action);
  if (keep_plan_) plan_.actions.push_back(action);
  clock_ = timeline_.now(before_);
}

void Driver::act(Verb verb, std::uint32_t subject, Block block) {
  emit({verb, before_, subject, block.offset, block.size});
  if (verb != Verb::kAlloc && verb != Verb::kSwapIn) return;
  states_[subject].tag = block.tag;
  if (!users_.empty()) users_[subject].clear();
}

void Driver::journal(VersionId v) {
  VersionState& s = state(v);
  for (std::size_t i = 0; i < policies_.size(); ++i)
    if ((s.journaled & changes_[i].bit) == 0) {
      s.journaled |= changes_[i].bit;
      changes_[i].ids.push_back(v);
    }
}

void Driver::tell_dropped(VersionId v) {
  if (watching_ == 0) return;
  for (std::size_t i = 0; i < policies_.size(); ++i)
    if ((watching_ & changes_[i].bit) != 0) search([&] { policies_[i]->dropped(view(i), v); });
}

/// Says that filled_ have content now.
void Driver::tell_computed() {
  if (watching_ == 0) return;
  for (std::size_t i = 0; i < policies_.size(); ++i)
    if ((watching_ & changes_[i].bit) != 0) search([&] { policies_[i]->computed(view(i), filled_); });
}

void Driver::lock(VersionId v) {
  VersionState& s = state(v);
  if (s.locks++ == 0) {
    s.leaving = false;
    changed(v);
  }
}

void Driver::now_evictable(VersionId v) {
  state(v).order = ++last_order_;
  state(v).defined = true;
  changed(v);
}

}  // namespace tidepool
