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
      pool_{pool},
      policies_{policies},
      may_swap_{may_swap},
      keep_plan_{keep_plan},
      timeline_{trace, spec.machine, spec.assume, states_},
      clock_{spec.assume.clock_start},
      drafts_(policies.size()),
      next_draft_(policies.size()),
      current_(trace.buffers().size()),
      started_on_host_(trace.buffers().size()),
      lost_(trace.versions().size()) {
  for (std::size_t i = 0; i < policies_.size(); ++i) {
    changes_[i].bit = static_cast<std::uint8_t>(1u << i);
    if (policies_[i]->watches()) watching_ |= changes_[i].bit;
  }
}

Result Driver::run() {
  const auto begin_time = std::chrono::steady_clock::now();
  Result result;
  result.baseline = baseline_;
  try {
    pool_.start(trace_, spec_.capacity, *this);
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      drafts_[i] = policies_[i]->plan(trace_, spec_.machine, spec_.capacity);
      policies_[i]->start(view(i));
    }
    for (int iteration = 0; iteration < spec_.iterations; ++iteration) {
      start_iteration(iteration);
      for (std::size_t i = 0; i < trace_.steps().size(); ++i) step(i);
    }
    finish_program();
  } catch (const Stop& stop) {
    result.outcome = stop.outcome;
    result.message = stop.message;
  }
  result.totals = timeline_.totals();
  result.realised = std::move(plan_);
  for (const auto& policy : policies_) result.cost_evaluations += policy->cost_evaluations();
  result.plan_time = Nanos{std::chrono::nanoseconds{std::chrono::steady_clock::now() - begin_time}.count()};
  return result;
}

// ---------------------------------------------------------------------------------------------------------- program

void Driver::start_iteration(int iteration) {
  before_ = trace_.ops().empty() ? OpId{} : OpId{0};
  op_ = 0;
  if (iteration > 0) {
    drop_temporaries(0);
    for (std::size_t i = 0; i < current_.size(); ++i) {
      if (!trace_.buffers()[i].outlives || !trace_.buffers()[i].born_before) continue;
      if (VersionState& s = state(current_[i]); !s.filled && !s.on_host) bring_back(current_[i]), s.pinned = true;
      else if (!s.on_host) s.pinned = true;
      changed(current_[i]);
    }
    while (!leaving_.empty()) settle_front();
    for (std::size_t i = 0; i < current_.size(); ++i)
      if (const Buffer& buffer = trace_.buffers()[i]; buffer.outlives && !buffer.born_before) end_version(current_[i]);
    // What a policy brought back or kept although the program has ended it does not live on.
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i].placed && !states_[i].wanted) take_place_away(VersionId{i}, Verb::kFree);
    act(Verb::kNext, static_cast<std::uint32_t>(iteration));
    std::fill(lost_.begin(), lost_.end(), false);
    std::fill(next_draft_.begin(), next_draft_.end(), 0);
    for (Changes& changes : changes_) changes.ids.clear();
    anything_dropped_ = false;
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (trace_.versions()[i].kind != VersionKind::kView) changed(VersionId{i});
  }
  begun_ = OpId{};
  for (std::size_t i = 0; i < current_.size(); ++i) {
    if (!trace_.buffers()[i].born_before) continue;
    const VersionId v = current_[i] = trace_.first_version(BufferId{i});
    VersionState& s = state(v);
    s.created = s.wanted = s.defined = true;
    s.pinned = assume_.pin_sources;
    if (iteration > 0 && trace_.buffers()[i].outlives) continue;  // carried over where it was
    const Request request{trace_.size(v), trace_.buffers()[i].stream, v};
    if (const std::optional<Block> block = pool_.place(request)) {
      act(Verb::kAlloc, v.value(), *block);
      now_evictable(v);
    } else if (may_swap_) {
      started_on_host_[i] = true;
    } else {
      out_of_memory(request);
    }
  }
}

void Driver::step(std::size_t position) {
  const Step& step = trace_.steps()[position];
  switch (step.kind) {
    case StepKind::kAlloc:
      if (const OpId op = trace_.allocated_for(position); op.valid() && begun_ != op) {
        // An op may read what was allocated for it as it came: that must be there before its inputs are gathered.
        for (std::size_t i = position; trace_.steps()[i].kind == StepKind::kAlloc; ++i)
          if (const BufferId b{trace_.steps()[i].id}; trace_.version(trace_.first_version(b)).kind == VersionKind::kInitial)
            alloc_buffer(b);
        begin(op);
      }
      alloc_buffer(BufferId{step.id});
      break;
    case StepKind::kFree: free_buffer(BufferId{step.id}); break;
    case StepKind::kRun:
      if (begun_ != OpId{step.id}) begin(OpId{step.id});
      execute(OpId{step.id}, VersionId{}, temporaries_.size());
      break;
    case StepKind::kForget:
      if (assume_.copy_on_write) end_version(VersionId{step.id});
      break;
  }
}

void Driver::begin(OpId op) {
  begun_ = before_ = op;
  op_ = op.value();
  if (!leaving_.empty()) settle_past();
  for (std::size_t i = 0; i < policies_.size(); ++i) {
    std::vector<Action>& draft = drafts_[i];
    wishes_.clear();
    while (next_draft_[i] < draft.size() && draft[next_draft_[i]].before <= op) wishes_.push_back(draft[next_draft_[i]++]);
    policies_[i]->before_run(view(i), op, wishes_);
    if (!wishes_.empty()) carry_out(std::vector<Action>{wishes_});
  }
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
      const bool counted = std::any_of(uses.begin(), uses.begin() + static_cast<std::ptrdiff_t>(i), [&](const Use& earlier) {
        return earlier.access == Access::kView && trace_.root(earlier.out) == root;
      });
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
  if (loses) before_loss(v);
  if (s.placed) take_place_away(v, Verb::kFree);
  else if (s.on_host) act(Verb::kFree, v.value());
  if (loses) after_loss(v);
}

void Driver::finish_program() {
  before_ = OpId{};
  for (const VersionId named : trace_.outputs()) {
    const VersionId root = trace_.root(named);
    if (started_on_host_[trace_.version(root).buffer.index()] && state(root).on_host && !state(root).filled) continue;
    if (!defined(named)) bring_back(named);
    state(root).pinned = true;
    changed(root);
  }
}

// ------------------------------------------------------------------------------------------ bringing back and running

/// The name under which a version must be usable: where views need no replay, that of the bytes.
VersionId Driver::handle(VersionId named) const { return assume_.replay_views ? named : trace_.root(named); }

bool Driver::defined(VersionId named) const {
  const VersionId h = handle(named);
  return trace_.version(h).kind == VersionKind::kView ? state(h).defined : state(h).filled;
}

/// Makes a version usable outside of any op's inputs.
void Driver::bring_back(VersionId named) {
  const std::size_t base = frames_.size();
  const std::size_t first_temporary = temporaries_.size();
  while (!defined(named)) {
    const VersionId root = trace_.root(named);
    if (!state(root).filled && state(root).on_host) {
      swap_in(root);
    } else {
      enter(trace_.version(handle(named)).producer, handle(named));
      gather(base);
    }
  }
  drop_temporaries(first_temporary);
}

/// Notes that `op` wants its inputs and locks those that are there.
void Driver::enter(OpId op, VersionId target) {
  if (!op.valid() || (target.valid() && trace_.op(op).kind == OpKind::kSource))
    throw Stop{Outcome::kError, fmt::format("version {} is gone and cannot be recomputed", target.value())};
  const std::span uses = trace_.uses(op);
  frames_.push_back({op, target, pending_inputs_.size(), pending_inputs_.size(), temporaries_.size()});
  for (const Use& use : uses)
    if (use.in.valid()) {
      const VersionId root = trace_.root(use.in);
      state(root).last_access = clock_;
      changed(root);
    }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (!uses[i].in.valid()) continue;
    if (defined(uses[i].in)) lock(trace_.root(uses[i].in));
    else pending_inputs_.push_back(static_cast<std::uint32_t>(i));
  }
}

/// Works on the top frame until the frames above `base` are done.
void Driver::gather(std::size_t base) {
  while (frames_.size() > base) {
    if (!advance(frames_.back())) continue;
    const Frame frame = frames_.back();
    frames_.pop_back();
    if (frame.target.valid()) execute(frame.op, frame.target, frame.first_temporary);
  }
}

/// Brings the next absent input back. False: another frame must be worked on first.
bool Driver::advance(Frame& frame) {
  const std::span uses = trace_.uses(frame.op);
  while (frame.next_pending < pending_inputs_.size()) {
    const VersionId named = uses[pending_inputs_[frame.next_pending]].in;
    const VersionId root = trace_.root(named);
    if (!state(root).filled && state(root).on_host) swap_in(root);
    if (!defined(named)) {
      enter(trace_.version(handle(named)).producer, handle(named));
      return false;
    }
    lock(root);
    ++frame.next_pending;
  }
  pending_inputs_.resize(frame.first_pending);
  drop_temporaries(frame.first_temporary);
  return true;
}

/// Gives one output of an op that is about to run the place it needs.
void Driver::place_output(OpId op, VersionId out) {
  VersionState& s = state(out);
  if (s.placed && !s.filled) return;  // the program's own alloc
  const Version& version = trace_.version(out);
  if (!assume_.copy_on_write && version.parent.valid() && state(version.parent).placed) {
    VersionState& replaced = state(version.parent);
    std::uint32_t own_locks = 0;
    for (const Use& use : trace_.uses(op)) own_locks += use.in.valid() && trace_.root(use.in) == version.parent;
    if (replaced.locks == own_locks) {
      if (s.filled) ending_.push_back({replaced.offset, replaced.held});
      if (replaced.filled) overwritten_.push_back(version.parent);
      replaced.locks = 0;  // it ends with this run
      replaced.leaving = false;
      return;
    }
    if (!s.filled) {
      act(Verb::kAlloc, out.value(), find_place(out));
      if (version.kind == VersionKind::kUpdate) act(Verb::kCopy, out.value());
      return;
    }
  }
  const Block block = find_place(out);
  act(s.filled ? Verb::kScratch : Verb::kAlloc, out.value(), block);
  if (s.filled) ending_.push_back(block);
}

/// Notes in filled_ what the next run will fill: the one that it is for comes last.
void Driver::note_filled(OpId op, VersionId target) {
  VersionId last = target;
  if (!last.valid())
    for (const Use& use : trace_.uses(op))
      if (use.out.valid() && !last.valid()) last = use.out;
  filled_.clear();
  for (const VersionId made : trace_.made(op))
    if (made != last && !state(made).filled) filled_.push_back(made);
  if (last.valid() && trace_.version(last).kind != VersionKind::kView && !state(last).filled) filled_.push_back(last);
}

/// Runs an op whose inputs are there and locked: the program's run, or again for `target`.
void Driver::execute(OpId op, VersionId target, std::size_t first_temporary) {
  const std::span uses = trace_.uses(op);
  const bool again = target.valid();
  if (!again && !assume_.copy_on_write)
    for (const VersionId made : trace_.made(op))
      if (const VersionId replaced = trace_.version(made).parent; replaced.valid()) {
        state(replaced).wanted = false;
        if (anchored(replaced)) before_loss(replaced);
      }
  note_filled(op, target);

  ending_.clear();
  overwritten_.clear();
  for (const VersionId out : trace_.made(op))
    if (state(out).filled) lock(out);  // it will be written a second time and must stay until then
  for (const VersionId out : trace_.made(op)) place_output(op, out);
  for (const VersionId out : trace_.made(op))
    if (state(out).filled && --state(out).locks == 0) changed(out);
  act(Verb::kRun, op.value());
  for (const Block& block : ending_) pool_.release(block);
  drop_temporaries(first_temporary);

  for (const Use& use : uses) {
    if (!use.out.valid()) continue;
    state(use.out).defined = true;
    if (again) continue;
    state(trace_.root(use.out)).last_access = clock_;
    changed(trace_.root(use.out));
  }
  for (const VersionId made : filled_) {
    VersionState& s = state(made);
    if (!again) {
      s.wanted = true;
      s.regenerable = trace_.op(op).kind != OpKind::kSource;
      s.pinned = assume_.pin_sources && trace_.op(op).kind == OpKind::kSource;
      current_[trace_.version(made).buffer.index()] = made;
    } else if (!s.wanted && !assume_.keep_recomputed) {
      temporaries_.push_back(made);
    }
    now_evictable(made);
  }
  for (const VersionId v : overwritten_) {
    changed(v);
    if (!again && anchored(v)) after_loss(v);
    tell_dropped(v);
  }
  if (!filled_.empty()) tell_computed();
  unlock_inputs(op);
  if (again) check_limit();
}

void Driver::unlock_inputs(OpId op) {
  for (const Use& use : trace_.uses(op)) {
    if (!use.in.valid()) continue;
    const VersionId root = trace_.root(use.in);
    VersionState& s = state(root);
    if (s.locks > 0 && --s.locks == 0) now_evictable(root);
  }
}

/// Lets go of what was brought back for others, once nobody holds it.
void Driver::drop_temporaries(std::size_t first) {
  if (temporaries_.size() <= first) return;
  std::size_t kept = first;
  for (std::size_t i = first; i < temporaries_.size(); ++i) {
    const VersionId v = temporaries_[i];
    if (!state(v).filled || state(v).wanted) continue;
    if (state(v).locks > 0 || state(v).pinned) temporaries_[kept++] = v;
    else take_place_away(v, Verb::kFree);
  }
  temporaries_.resize(kept);
}

void Driver::swap_in(VersionId v) {
  act(Verb::kSwapIn, v.value(), find_place(v));
  now_evictable(v);
  filled_.assign(1, v);
  tell_computed();
}

// ------------------------------------------------------------------------------------------------------------ memory

Block Driver::find_place(VersionId v) {
  const Request request{trace_.size(v), trace_.buffer(trace_.version(v).buffer).stream, v};
  for (;;) {
    if (const std::optional<Block> block = pool_.place(request)) return *block;
    if (const std::size_t kept = temporaries_.size(); kept > 0)
      if (drop_temporaries(0); temporaries_.size() < kept) continue;
    if (!leaving_.empty()) settle_front();  // a copy under way gives memory without a further decision
    else if (!ask_policies(request)) out_of_memory(request);
  }
}

bool Driver::ask_policies(const Request& request) {
  for (std::size_t i = 0; i < policies_.size(); ++i) {
    wishes_.clear();
    policies_[i]->make_room(view(i), request, wishes_);
    if (!wishes_.empty() && carry_out(wishes_)) return true;
  }
  return false;
}

/// Turns what a policy wants into actions. False if nothing came of it.
bool Driver::carry_out(const std::vector<Action>& wishes) {
  bool done = false;
  for (const Action& wish : wishes) {
    const auto refuse = [&](std::string_view reason) {
      Action named = wish;
      named.before = before_;
      throw PlanError{fmt::format("{}: {}", to_text(named), reason)};
    };
    if (wish.subject >= (wish.verb == Verb::kRun ? trace_.ops().size() : trace_.versions().size())) refuse("no such id");
    const VersionId v{wish.subject};
    switch (wish.verb) {
      case Verb::kDrop:
      case Verb::kSwapOut: {
        VersionState& s = state(v);
        if (!s.filled || s.leaving) break;  // gone already, or on its way
        if (s.locks > 0 || s.pinned) refuse("it is in use");
        if (wish.verb == Verb::kSwapOut && !s.on_host) {
          act(Verb::kSwapOut, v.value());
          s.leaving = true;
          leaving_.push_back(v);
          changed(v);
        } else {
          if (!s.on_host && s.wanted && !s.regenerable) refuse("it could not be recomputed and is not on the host");
          take_place_away(v, Verb::kDrop);
        }
        done = true;
        break;
      }
      case Verb::kSwapIn: done |= prefetch(v); break;
      case Verb::kRun:
        for (const VersionId made : trace_.made(OpId{wish.subject}))
          if (state(made).created && state(made).wanted && !state(made).filled) {
            bring_back(made);
            done = true;
          }
        break;
      default: refuse("a policy cannot decide this");
    }
  }
  return done;
}

/// Brings a version back early if there is room without asking anybody.
bool Driver::prefetch(VersionId v) {
  VersionState& s = state(v);
  if (s.filled || !s.on_host || !s.created) return false;
  const std::optional<Block> block = pool_.place({trace_.size(v), trace_.buffer(trace_.version(v).buffer).stream, v});
  if (!block) return false;
  act(Verb::kSwapIn, v.value(), *block);
  now_evictable(v);
  filled_.assign(1, v);
  tell_computed();
  return true;
}

void Driver::settle_front() {
  const VersionId v = leaving_.front();
  leaving_.pop_front();
  if (!state(v).leaving) return;  // it was wanted again before it had left
  state(v).leaving = false;
  take_place_away(v, Verb::kDrop);
}

void Driver::settle_past() {
  while (!leaving_.empty() && state(leaving_.front()).host_ready <= clock_) settle_front();
}

void Driver::take_place_away(VersionId v, Verb verb) {
  VersionState& s = state(v);
  const Block block{s.offset, s.held};
  const bool had_content = s.filled;
  act(verb, v.value());
  pool_.release(block);
  if (assume_.replay_views)
    for (const OpId viewer : trace_.viewers(v)) {
      if (viewer.value() > op_) break;
      for (const Use& use : trace_.uses(viewer))
        if (use.access == Access::kView && trace_.root(use.out) == v) state(use.out).defined = false;
    }
  anything_dropped_ |= verb == Verb::kDrop || s.regenerable;
  changed(v);
  if (had_content) tell_dropped(v);
}

void Driver::out_of_memory(const Request& request) {
  const Buffer& buffer = trace_.buffer(trace_.version(request.version).buffer);
  Bytes needed{};
  if (before_.valid()) {
    std::vector<VersionId> working_set;
    for (const Use& use : trace_.uses(before_)) {
      if (use.in.valid()) working_set.push_back(trace_.root(use.in));
      if (use.out.valid() && (assume_.copy_on_write || !trace_.version(use.out).parent.valid()))
        working_set.push_back(trace_.root(use.out));
    }
    std::sort(working_set.begin(), working_set.end());
    working_set.erase(std::unique(working_set.begin(), working_set.end()), working_set.end());
    for (const VersionId v : working_set) needed += trace_.size(v);
  }
  const bool never = needed > spec_.capacity && assume_.name.empty();
  throw Stop{never ? Outcome::kInfeasible : Outcome::kOutOfMemory,
             fmt::format("{} wants {} for buffer {}{}; {} are held of {}, the largest hole is {}, and no policy makes room{}",
                         before_.valid() ? fmt::format("op {} ({})", before_.value(), trace_.text(trace_.op(before_).name))
                                         : "the end of the step",
                         to_text(request.size), trace_.version(request.version).buffer.value(),
                         buffer.name.value() == 0 ? "" : fmt::format(" ({})", trace_.text(buffer.name)),
                         to_text(timeline_.held()), to_text(spec_.capacity), to_text(pool_.largest_hole()),
                         never ? fmt::format("; what this op uses at once takes {}", to_text(needed)) : "")};
}

void Driver::check_limit() {
  if (!spec_.overhead_limit) return;
  const double extra = static_cast<double>((timeline_.recompute() + timeline_.stalled()).count());
  if (extra > (*spec_.overhead_limit - 1) * static_cast<double>(baseline_.count()))
    throw Stop{Outcome::kTimeLimit,
               fmt::format("recomputation and stalls exceed {} of the step's {} before op {} of {}",
                           to_text(timeline_.recompute() + timeline_.stalled()), to_text(baseline_), op_, trace_.ops().size())};
}

// ------------------------------------------------------------------------------------------------------ what is lost

/// Whether content is gone for good when its place ends: it cannot be recomputed.
bool Driver::anchored(VersionId v) const { return !policies_.empty() && !assume_.pin_sources && !state(v).regenerable; }

/// Brings back what the program still wants and could only be recomputed from `v`, while that is possible. What is there
/// already and depends on `v` must stay from now on.
void Driver::before_loss(VersionId v) {
  if (!anything_dropped_) return;
  std::vector<VersionId> reached{v}, wanted;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const OpId reader : trace_.readers(reached[i])) {
      if (reader.value() > op_) break;
      for (const VersionId made : trace_.made(reader)) {
        VersionState& s = state(made);
        if (!s.created || !s.regenerable) continue;
        s.regenerable = false;
        changed(made);
        if (s.placed || s.on_host) continue;
        reached.push_back(made);
        if (s.wanted) wanted.push_back(made);
      }
    }
  std::sort(wanted.begin(), wanted.end());
  wanted.insert(wanted.begin(), v);
  for (const VersionId w : wanted) {
    if (w != v && !state(w).filled) bring_back(w);
    lock(w);  // together they must outlast the loss
  }
  for (const VersionId w : wanted)
    if (--state(w).locks == 0) changed(w);
}

/// `v` is gone for good: what was made from it directly cannot be recomputed any more, and what of that is absent is gone too.
void Driver::after_loss(VersionId v) {
  std::vector<VersionId> gone{v};
  while (!gone.empty()) {
    const VersionId lost = gone.back();
    gone.pop_back();
    if (lost_[lost.index()]) continue;
    lost_[lost.index()] = true;
    for (const OpId reader : trace_.readers(lost)) {
      if (reader.value() > op_) break;
      for (const VersionId made : trace_.made(reader)) {
        VersionState& s = state(made);
        if (!s.created) continue;
        s.regenerable = false;
        changed(made);
        if (!s.filled && !s.placed && !s.on_host) gone.push_back(made);
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------------- bookkeeping

void Driver::emit(Action action) {
  timeline_.apply(action);
  if (keep_plan_) plan_.actions.push_back(action);
  clock_ = timeline_.now(before_);
}

void Driver::act(Verb verb, std::uint32_t subject, Block block) { emit({verb, before_, subject, block.offset, block.size}); }

void Driver::changed(VersionId v) {
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
    if ((watching_ & changes_[i].bit) != 0) policies_[i]->dropped(view(i), v);
}

/// Says that filled_ have content now.
void Driver::tell_computed() {
  if (watching_ == 0) return;
  for (std::size_t i = 0; i < policies_.size(); ++i)
    if ((watching_ & changes_[i].bit) != 0) policies_[i]->computed(view(i), filled_);
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

std::optional<Bytes> Driver::reserve(Bytes size) {
  const Bytes address = next_address_;
  if (!map(address, size)) return std::nullopt;
  next_address_ += round_up(size, 2_MiB);
  return address;
}

Bytes Driver::reserve_addresses(Bytes size) {
  const Bytes address = next_address_;
  next_address_ += round_up(size, 2_MiB);
  return address;
}

bool Driver::map(Bytes address, Bytes size) {
  if (reserved_ + size > spec_.capacity) return false;
  reserved_ += size;
  emit({Verb::kReserve, before_, 0, address, size});
  return true;
}

void Driver::release(Bytes address, Bytes size) {
  reserved_ -= size;
  emit({Verb::kRelease, before_, 0, address, size});
}

}  // namespace tidepool
