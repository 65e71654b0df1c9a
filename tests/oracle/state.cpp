#include "tests/oracle/state.hpp"

#include <algorithm>

namespace tidepool::optimum {
namespace {

/// A copy of `v` that begins at or after `begin`, `first` and `second`. Marks among these are of one direction.
SharedLink::Copy copy_after(Nanos begin, Nanos first, Nanos second, std::size_t v) {
  SharedLink::Copy copy{begin, {}, static_cast<std::uint8_t>(v)};
  for (const Nanos each : {first, second})
    (SharedLink::is_mark(each) ? copy.after_mark : copy.after) =
        std::max(SharedLink::is_mark(each) ? copy.after_mark : copy.after, each);
  return copy;
}

}  // namespace

Nanos State::base(const TinyStep& step) const {
  const Set streams = step.may_run[position];
  const auto first = stream.begin(), last = stream.begin() + static_cast<std::ptrdiff_t>(step.streams);
  if (streams == 0) return *std::max_element(first, last);
  Nanos least{std::numeric_limits<std::int64_t>::max()};
  for_each(streams, [&](std::size_t i) { least = std::min(least, stream[i]); });
  return least;
}

Nanos State::drained(const TinyStep& step) const {
  if (step.disturbed && (SharedLink::is_mark(h2d) || SharedLink::is_mark(d2h))) {
    State ended = *this;
    drain(step, ended);
    return ended.drained(step);
  }
  return std::max(
      {*std::max_element(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(step.streams)), h2d, d2h});
}

void State::shift(Nanos by) {
  const auto earlier = [&](Nanos& time) { time -= by; };
  for (auto* times : {&ready, &last_use, &host_ready}) std::for_each(times->begin(), times->end(), earlier);
  std::for_each(stream.begin(), stream.end(), earlier);
  std::for_each(op_end.begin(), op_end.end(), earlier);
  std::for_each(free_from.begin(), free_from.end(), earlier);
  for (Nanos* time : {&h2d, &d2h, &host, &counted_free_from}) earlier(*time);
  free.shift(by);
}

void Mover::emit(Verb verb, std::size_t subject, std::size_t unit_at) {
  if (actions_ == nullptr) return;
  Action action{.verb = verb};
  if (s_.position < step_.ops()) action.before = OpId{s_.position};
  action.subject =
      verb == Verb::kRun || verb == Verb::kNext ? static_cast<std::uint32_t>(subject) : step_.named[subject].value();
  if (verb == Verb::kAlloc || verb == Verb::kSwapIn || verb == Verb::kScratch) {
    action.size = step_.bytes[subject];
    action.offset = step_.freedom.addresses ? step_.unit * static_cast<std::int64_t>(unit_at) : kNoAddress;
  }
  actions_->push_back(action);
}

/// The time at which the plan issues a copy that is decided now.
Nanos Mover::now() const {
  if (s_.position < step_.ops()) return s_.stream[step_.op[s_.position].stream];
  return *std::max_element(s_.stream.begin(), s_.stream.begin() + static_cast<std::ptrdiff_t>(step_.streams));
}

/// The time from which a place for `v` may be written.
Nanos Mover::claim(std::size_t v, const Move& move, std::size_t output) {
  const std::size_t unit_at = move.unit_at[output];
  if (step_.chooses_bytes()) return s_.free.take(move.leaves, step_.bytes[v], step_.free(s_.placed), kLongAgo);
  if (!step_.freedom.addresses) return s_.counted_free_from;
  Nanos last = kLongAgo;
  for (std::int64_t i = 0; i < step_.bytes[v] / step_.unit; ++i) {
    Nanos& free_from = s_.free_from[unit_at + static_cast<std::size_t>(i)];
    last = std::max(last, free_from);
    free_from = kLongAgo;
  }
  return last;
}

void Mover::let_go(std::size_t v, std::size_t unit_at, Nanos from) {
  if (step_.chooses_bytes()) {
    s_.free.release(step_.bytes[v], from);
    return;
  }
  if (!step_.freedom.addresses) {
    s_.counted_free_from = std::max(s_.counted_free_from, from);
    return;
  }
  for (std::int64_t i = 0; i < step_.bytes[v] / step_.unit; ++i)
    s_.free_from[unit_at + static_cast<std::size_t>(i)] = from;
}

void Mover::give_place(std::size_t v, Nanos free_from, std::size_t unit_at) {
  s_.placed |= bit(v);
  s_.unit_at[v] = static_cast<std::uint8_t>(unit_at);
  s_.ready[v] = s_.last_use[v] = free_from;
}

void Mover::end_place(std::size_t v) {
  if (!has(s_.placed, v)) return;
  // A copy to the host under way began after the content was complete.
  const bool leaves = SharedLink::is_mark(s_.last_use[v]);
  let_go(v, s_.unit_at[v], leaves ? s_.last_use[v] : std::max(s_.last_use[v], s_.ready[v]));
  s_.placed &= ~bit(v);
  s_.filled &= ~bit(v);
}

/// Frees content that is not needed again, drops other content.
void Mover::drop(std::size_t v) {
  const bool wanted = has(step_.useful[s_.position], v);
  emit(wanted ? Verb::kDrop : Verb::kFree, v);
  end_place(v);
  if (!wanted) s_.on_host &= ~bit(v);
}

/// Versions to be freed at once: those that are not needed again, and whose places no op or copy still uses. If places
/// choose bytes, places that are still used are freed too, since this makes no other place wait.
Set Mover::dead() const {
  Set dead = 0;
  if (step_.chooses_bytes()) return s_.filled & ~step_.useful[s_.position];
  if (const Set unwanted = s_.filled & ~step_.useful[s_.position]; unwanted != 0) {
    const Nanos base = s_.base(step_);
    for_each(unwanted, [&](std::size_t v) {
      if (std::max(s_.ready[v], s_.last_use[v]) <= base) dead |= bit(v);
    });
  }
  return dead;
}

void Mover::swap_out(std::size_t v) {
  emit(Verb::kSwapOut, v);
  s_.host += step_.submit;
  const Nanos begin = std::max(now(), s_.host);
  if (step_.disturbed) {
    s_.d2h = add_copy(s_, 0, copy_after(begin, s_.ready[v], Nanos{}, v));
    s_.last_use[v] = s_.d2h;
  } else {
    s_.d2h = std::max({s_.d2h, begin, s_.ready[v]}) + step_.time_out[v];
    s_.last_use[v] = std::max(s_.last_use[v], s_.d2h);
  }
  s_.host_ready[v] = s_.d2h;
  s_.on_host |= bit(v);
}

void Mover::swap_in(std::size_t v, const Move& move) {
  emit(Verb::kSwapIn, v, move.unit_at[0]);
  give_place(v, claim(v, move), move.unit_at[0]);
  s_.host += step_.submit;
  const Nanos begin = std::max(now(), s_.host);
  if (step_.disturbed)
    s_.h2d = add_copy(s_, 1, copy_after(begin, s_.host_ready[v], s_.ready[v], v));
  else
    s_.h2d = std::max({s_.h2d, begin, s_.host_ready[v], s_.ready[v]}) + step_.time_in[v];
  s_.ready[v] = s_.last_use[v] = s_.h2d;
  s_.filled |= bit(v);
}

/// Copies the version that `v` replaces to the place of `v`, on the stream of the op that updates it.
void Mover::copy(std::size_t v, std::size_t parent) {
  emit(Verb::kCopy, v);
  Nanos& stream = s_.stream[step_.op[static_cast<std::size_t>(step_.producer[v])].stream];
  const Nanos from = known(s_.ready[parent]), to = known(s_.ready[v]);
  stream = std::max({stream, from, to}) + step_.time_copy[v];
  s_.last_use[parent] = std::max(s_.last_use[parent], stream);
  s_.ready[v] = s_.last_use[v] = stream;
}

/// Lets the stream of the next op wait for the copies of `v`.
void Mover::await(std::size_t v) {
  emit(Verb::kAwait, v);
  Nanos& stream = s_.stream[step_.op[s_.position].stream];
  stream = std::max(stream, known(s_.host_ready[v]));
  if (has(s_.filled, v)) stream = std::max(stream, known(s_.ready[v]));
}

/// Gives places to the outputs of a run. If places choose bytes, the outputs choose theirs together.
/// @return  the time from which all of the bytes that they choose may be written
Nanos Mover::give_outputs_places(const TinyOp& op, const Move& move) {
  Nanos chosen = kLongAgo;
  int choose = 0;
  if (step_.chooses_bytes()) {
    Bytes wanted;
    for (std::size_t i = 0; i < op.output_count; ++i) {
      const std::size_t v = op.outputs[i].version;
      if (move.writes[i] != Writes::kScratch && (move.writes[i] != Writes::kOwnPlace || has(s_.placed, v))) continue;
      wanted += step_.bytes[v];
      ++choose;
    }
    chosen = s_.free.take(move.leaves, wanted, step_.free(s_.placed), kLongAgo);
  }
  for (std::size_t i = 0; i < op.output_count; ++i) {
    const std::size_t v = op.outputs[i].version;
    if (move.writes[i] != Writes::kOwnPlace || has(s_.placed, v)) continue;
    emit(Verb::kAlloc, v, move.unit_at[i]);
    // If there are several outputs, this one may get the bytes that may be written first, so its copy need not wait.
    const Nanos its_own = choose > 1 && op.outputs[i].update ? kLongAgo : chosen;
    give_place(v, step_.chooses_bytes() ? its_own : claim(v, move, i), move.unit_at[i]);
  }
  for (std::size_t i = 0; i < op.output_count; ++i)
    if (move.writes[i] == Writes::kScratch) emit(Verb::kScratch, op.outputs[i].version, move.unit_at[i]);
  for (std::size_t i = 0; i < op.output_count; ++i)
    if (move.writes[i] == Writes::kOwnPlace && op.outputs[i].update)
      copy(op.outputs[i].version, static_cast<std::size_t>(op.outputs[i].parent));
  return chosen;
}

Nanos Mover::start_of(std::size_t k, const Move& move, Nanos places_free) {
  const TinyOp& op = step_.op[k];
  Nanos start = s_.stream[op.stream];
  if (step_.launch > Nanos{}) start = std::max(start, s_.host += step_.launch);
  const auto wait_for = [&](Nanos time) { start = std::max(start, known(time)); };
  wait_for(places_free);
  for_each(op.reads, [&](std::size_t v) { wait_for(s_.ready[v]); });
  for (std::size_t i = 0; i < op.output_count; ++i) {
    const TinyOp::Output& out = op.outputs[i];
    if (move.writes[i] == Writes::kOwnPlace)
      wait_for(s_.ready[out.version]);
    else if (out.parent >= 0)
      wait_for(s_.last_use[static_cast<std::size_t>(out.parent)]);
    if (move.writes[i] == Writes::kScratch && !step_.chooses_bytes()) wait_for(claim(out.version, move, i));
  }
  // The Timeline applies order edges to first runs, and to reruns of the op whose first run is the latest.
  if (k + 1 >= s_.position) for_each(op.after, [&](std::size_t other) { wait_for(s_.op_end[other]); });
  return start;
}

void Mover::run(const Move& move) {
  const std::size_t k = move.subject;
  const TinyOp& op = step_.op[k];
  const Nanos places_free = give_outputs_places(op, move);
  emit(Verb::kRun, k);
  const Nanos end = start_of(k, move, places_free) + op.duration;
  s_.stream[op.stream] = end;
  if (op.host_wait) s_.host = std::max(s_.host, end);
  if (step_.orders) s_.op_end[k] = end;
  for_each(op.reads, [&](std::size_t v) { s_.last_use[v] = std::max(s_.last_use[v], end); });
  for (std::size_t i = 0; i < op.output_count; ++i) {
    const std::size_t v = op.outputs[i].version;
    const std::size_t parent = static_cast<std::size_t>(op.outputs[i].parent);
    switch (move.writes[i]) {
      case Writes::kScratch:
        if (step_.streams > 1) let_go(v, move.unit_at[i], end);
        continue;
      case Writes::kOver:
        end_place(parent);
        continue;
      case Writes::kTakesOver:
        s_.unit_at[v] = s_.unit_at[parent];
        s_.placed = (s_.placed | bit(v)) & ~bit(parent);
        s_.filled &= ~bit(parent);
        s_.on_host &= ~bit(parent);
        break;
      case Writes::kOwnPlace:
        break;
    }
    s_.filled |= bit(v);
    s_.ready[v] = s_.last_use[v] = end;
  }
  if (k == s_.position) ++s_.position;
}

/// Begins the next iteration: content that outlives the step becomes initial content, all other content is gone.
void Mover::next_iteration() {
  emit(Verb::kNext, 0);
  Set stays = 0;
  for (const auto& [first, last] : step_.carried) stays |= bit(last);
  for_each(s_.placed & ~stays, [&](std::size_t v) { end_place(v); });
  State next = s_;
  next.placed = next.filled = next.on_host = 0;
  next.ready.fill(kLongAgo), next.last_use.fill(kLongAgo), next.host_ready.fill(kLongAgo), next.op_end.fill(kLongAgo);
  for (const auto& [first, last] : step_.carried) {
    next.placed |= has(s_.placed, last) ? bit(first) : 0;
    next.filled |= has(s_.filled, last) ? bit(first) : 0;
    next.on_host |= has(s_.on_host, last) ? bit(first) : 0;
    next.unit_at[first] = s_.unit_at[last];
    next.ready[first] = s_.ready[last], next.last_use[first] = s_.last_use[last];
    next.host_ready[first] = s_.host_ready[last];
  }
  next.position = next.begun = 0;
  next.repeated = true;
  next.may_stay = 0;
  next.shift(step_.shift);
  s_ = next;
  skip_carried();
}

void Mover::skip_carried() {
  while (s_.repeated && s_.begun < step_.before_step.size() && has(step_.carried_first, step_.before_step[s_.begun]))
    ++s_.begun;
}

Set Mover::apply(const Move& move) {
  for_each(move.drops, [&](std::size_t v) { drop(v); });
  const std::size_t v = move.subject;
  switch (move.kind) {
    case MoveKind::kBeginOnDevice:
      emit(Verb::kAlloc, v, move.unit_at[0]);
      give_place(v, claim(v, move), move.unit_at[0]);
      s_.filled |= bit(v);
      ++s_.begun;
      skip_carried();
      break;
    case MoveKind::kBeginOnHost:
      s_.on_host |= bit(v);
      s_.host_ready[v] = kLongAgo;
      if (!step_.freedom.steady) s_.may_stay |= step_.outputs_of[v];
      ++s_.begun;
      skip_carried();
      break;
    case MoveKind::kSwapOut:
      swap_out(v);
      break;
    case MoveKind::kSwapIn:
      swap_in(v, move);
      break;
    case MoveKind::kAlloc:
      emit(Verb::kAlloc, v, move.unit_at[0]);
      give_place(v, claim(v, move), move.unit_at[0]);
      s_.filled |= bit(v) & step_.undefined;
      break;
    case MoveKind::kRun:
      run(move);
      break;
    case MoveKind::kAwait:
      await(v);
      break;
    case MoveKind::kNext:
      next_iteration();
      break;
  }
  if (step_.disturbed) advance(step_, s_, s_.base(step_));
  if (s_.begun < step_.before_step.size()) return 0;
  const Set frees = move.frees_decided ? move.frees : dead();
  for_each(frees & s_.filled, [&](std::size_t each) { drop(each); });
  s_.on_host &= step_.useful[s_.position];
  return frees;
}

}  // namespace tidepool::optimum
