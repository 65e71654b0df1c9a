// The part of the driver that brings inputs of an op back and runs the op.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/engine/driver.hpp"

namespace tidepool {

/// The version that must be resident before an op can read `named`: `named` itself if views are replayed, otherwise its
/// root.
VersionId Driver::handle(VersionId named) const { return assume_.replay_views ? named : trace_.root(named); }

bool Driver::defined(VersionId named) const {
  const VersionId h = handle(named);
  return trace_.version(h).kind == VersionKind::kView ? state(h).defined : state(h).filled;
}

/// Makes a version resident although no op that is about to run reads it.
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

/// Begins an op with a new frame: locks the inputs that are resident, and lists the others in pending_inputs_.
/// @param target  the version to recompute; none for the program's own run
void Driver::enter(OpId op, VersionId target) {
  if (!op.valid() || (target.valid() && trace_.op(op).kind == OpKind::kSource))
    throw Stop{Outcome::kError, fmt::format("version {} is gone and cannot be recomputed", target.value())};
  const std::span uses = trace_.uses(op);
  frames_.push_back({op, target, pending_inputs_.size(), pending_inputs_.size(), temporaries_.size()});
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (!uses[i].in.valid()) continue;
    const VersionId root = trace_.root(uses[i].in);
    state(root).last_access = clock_;
    if (assume_.replay_views ? defined(uses[i].in) : state(root).filled) {
      ++state(root).locks;
      state(root).leaving = false;
    } else {
      pending_inputs_.push_back(static_cast<std::uint32_t>(i));
    }
    calls_.changed(root);
  }
}

/// Runs an op again. If the op does not make its target, the run ends with an error: the rerun would be repeated
/// without end.
void Driver::run_again(const Frame& frame) {
  execute(frame.op, frame.target, frame.first_temporary);
  if (defined(frame.target)) return;
  refuse_if_not_executable();
  throw Stop{Outcome::kError, fmt::format("op {} did not make version {}", frame.op.value(), frame.target.value())};
}

/// Works on the top frame until all frames from index `base` on are done. Runs the op of each frame that has a target;
/// the program's own run is left to step().
void Driver::gather(std::size_t base) {
  while (frames_.size() > base) {
    if (!advance(frames_.back())) continue;
    const Frame frame = frames_.back();
    if (frame.target.valid()) run_again(frame);
    frames_.pop_back();
  }
}

/// Brings the absent inputs of a frame back, in their order. @return  false if another frame must be worked on first
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

/// Whether a run writes `out` over the place of the version that it replaces: only if nothing else holds that place.
/// @param again  the op has run before. Then other content may depend on the replaced version's copy on the host, which
/// must stay.
bool Driver::takes_over(VersionId out, bool again) const {
  const VersionId parent = trace_.version(out).parent;
  if (!parent.valid() || !state(parent).placed || has_empty_place(out)) return false;
  return state(parent).locks == own_reads_[out.index()] && !(again && only_on_host(parent));
}

/// Gives places to all outputs of an op that is about to run. Every place is found before the first one is taken over.
/// Making room may evict versions that are not held. So until all places are found, the run holds the versions that it
/// replaces in place or writes a second time, and keeps its outputs from being swapped in.
void Driver::place_outputs(OpId op, bool again) {
  const std::span made = trace_.made(op);
  if (std::all_of(made.begin(), made.end(), [&](VersionId out) { return has_empty_place(out); })) return;
  taken_over_.clear();
  for (const VersionId out : made)
    taken_over_.push_back(takes_over(out, again) ? trace_.version(out).parent : VersionId{});
  for (const VersionId out : made) lock(out);
  for (const VersionId parent : taken_over_)
    if (parent.valid()) lock(parent);
  blocks_.assign(made.size(), {});
  for (std::size_t i = 0; i < made.size(); ++i) {
    const VersionId out = made[i];
    if (taken_over_[i].valid() || has_empty_place(out)) continue;
    blocks_[i] = find_place(out);
    const Version& version = trace_.version(out);
    if (state(out).filled) {
      act(Verb::kScratch, out.value(), blocks_[i]);
      scratched_.push_back(out);
      continue;
    }
    act(Verb::kAlloc, out.value(), blocks_[i]);
    if (version.kind == VersionKind::kUpdate && state(version.parent).placed) act(Verb::kCopy, out.value());
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (taken_over_[i].valid())
      take_over(taken_over_[i], made[i]);
    else if (state(made[i]).filled)
      ending_.push_back({made[i], blocks_[i], {}});
    unlock(made[i]);
  }
  scratched_.clear();
}

/// Lets a run write in the place of `parent`: for good, or until the run ends if `out` is resident already.
void Driver::take_over(VersionId parent, VersionId out) {
  VersionState& replaced = state(parent);
  if (state(out).filled)
    ending_.push_back({parent, place_of(parent), users_.of(parent)});
  else
    users_.take_over(parent, out);
  if (replaced.filled) overwritten_.push_back(parent);
  replaced.locks = 0;  // it ends with this run
  replaced.leaving = false;
}

/// place_outputs() for an op that writes nothing in place. Places for all outputs are found first. Only then is it
/// known which outputs are still resident and get a scratch place, so the actions for all places follow after that.
void Driver::place_outputs_apart(OpId op) {
  const std::span made = trace_.made(op);
  blocks_.clear();
  for (const VersionId out : made) blocks_.push_back(has_empty_place(out) ? Block{} : find_place(out));
  for (std::size_t i = 0; i < made.size(); ++i) {
    const bool filled = state(made[i]).filled;
    if (has_empty_place(made[i])) continue;
    act(filled ? Verb::kScratch : Verb::kAlloc, made[i].value(), blocks_[i]);
    if (filled) ending_.push_back({made[i], blocks_[i], {}});
  }
}

/// Records in filled_ the versions that the next run fills. The last one is the target or, without a target, the op's
/// first output.
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

/// Runs an op whose inputs are resident and locked: the program's run, or again for `target`.
void Driver::execute(OpId op, VersionId target, std::size_t first_temporary) {
  const std::span uses = trace_.uses(op);
  const bool again = target.valid();
  losses_.next();
  if (!again && !assume_.copy_on_write)
    for (const VersionId made : trace_.made(op))
      if (const VersionId replaced = trace_.version(made).parent; replaced.valid()) {
        state(replaced).wanted = false;
        if (anchored(replaced)) before_loss(replaced);
      }
  ending_.clear();
  overwritten_.clear();
  assume_.copy_on_write ? place_outputs_apart(op) : place_outputs(op, again);
  note_filled(op, target);
  act(Verb::kRun, op.value());
  users_.note_run(op);
  for (const VersionId made : trace_.made(op))
    if (const VersionId replaced = trace_.version(made).parent; replaced.valid()) losses_.note_absent(replaced);
  give_back_ending(op);
  drop_temporaries(first_temporary);

  for (const Use& use : uses) {
    if (!use.out.valid()) continue;
    state(use.out).defined = true;
    if (again) continue;
    state(trace_.root(use.out)).last_access = clock_;
    calls_.changed(trace_.root(use.out));
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
  losses_.next();
  for (const VersionId v : overwritten_) calls_.changed(v);
  if (!again && !assume_.copy_on_write) after_replacing(op);
  for (const VersionId v : overwritten_) calls_.dropped(v);
  if (!filled_.empty()) calls_.computed(filled_);
  if (!all_stays_) unlock_inputs(op);
  if (!all_stays_) check_limit();
}

/// Records as lost the content that an op of the program has just replaced in place, if no copy of it is left.
void Driver::after_replacing(OpId op) {
  for (const VersionId made : trace_.made(op)) {
    const VersionId replaced = trace_.version(made).parent;
    if (!replaced.valid() || state(replaced).placed || state(replaced).on_host) continue;
    if (anchored(replaced)) losses_.after(replaced);
  }
}

void Driver::unlock_inputs(OpId op) {
  for (const Use& use : trace_.uses(op)) {
    if (!use.in.valid()) continue;
    const VersionId root = trace_.root(use.in);
    VersionState& s = state(root);
    if (s.locks > 0 && --s.locks == 0) now_evictable(root);
  }
}

/// Drops versions that were brought back for others, once they are not held.
void Driver::drop_temporaries(std::size_t first) {
  if (temporaries_.size() <= first) return;
  std::size_t kept = first;
  for (std::size_t i = first; i < temporaries_.size(); ++i) {
    const VersionId v = temporaries_[i];
    if (!state(v).filled || state(v).wanted) continue;
    if (state(v).locks > 0 || state(v).pinned)
      temporaries_[kept++] = v;
    else
      only_on_host(v) ? drop_by_rule(v) : take_place_away(v, Verb::kFree);
  }
  temporaries_.resize(kept);
}

void Driver::swap_in(VersionId v) {
  lock(v);  // making room must not swap it in as well
  act(Verb::kSwapIn, v.value(), find_place(v));
  unlock(v);
  now_evictable(v);
  filled_.assign(1, v);
  calls_.computed(filled_);
}

}  // namespace tidepool
