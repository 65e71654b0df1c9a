#include "tests/oracle/choices.hpp"

#include <algorithm>

namespace tidepool::optimum {

bool recoverable(const TinyStep& step, const State& state) {
  Set there = state.filled | state.on_host | step.undefined;
  const Set wanted = step.needed[state.position];
  for (bool grows = step.freedom.remat; grows && (wanted & ~there) != 0;) {
    grows = false;
    for (std::size_t k = 0; k < state.position; ++k) {
      const TinyOp& op = step.op[k];
      if (op.source || (op.reads & ~there) != 0 || (op.makes & ~there) == 0) continue;
      there |= op.makes;
      grows = true;
    }
  }
  return (wanted & ~there) == 0;
}

bool came_too_early(const TinyStep& step, const State& state) {
  if (step.streams > 1 || step.disturbed || !step.freedom.swap) return false;
  bool early = false;
  for_each(state.filled & state.on_host, [&](std::size_t v) {
    const Nanos begin = state.ready[v] - step.time_in[v];
    early |= state.ready[v] > state.stream[0] && begin >= state.stream[0] && begin >= state.host;
  });
  return early;
}

const std::vector<Move>& Choices::of(const State& state, Set fresh) {
  s_ = &state;
  fresh_ = fresh;
  moves_.clear();
  if (state.begun < step_.before_step.size()) {
    begin();
    return moves_;
  }
  if (step_.freedom.steady && state.ended(step_)) add({.kind = MoveKind::kNext});
  if (step_.freedom.swap) swap();
  if (step_.disturbed) await();
  alloc_undefined();
  alloc_early();
  for (std::size_t k = 0; k < step_.ops() && k <= state.position; ++k)
    if (k == state.position || step_.freedom.remat) run(k);
  return moves_;
}

/// Decides where initial content begins: on the device or, if plans may swap, on the host.
void Choices::begin() {
  Move move;
  move.subject = step_.before_step[s_->begun];
  if (step_.freedom.swap) {
    move.kind = MoveKind::kBeginOnHost;
    add(move);
  }
  if (step_.freedom.swap && !has(step_.useful[0], move.subject)) return;
  move.kind = MoveKind::kBeginOnDevice;
  // In a later iteration, content that was carried over and is also on the host may be dropped for this place.
  place_one(move, move.subject, s_->placed & ~(s_->repeated ? step_.carried_first & s_->on_host : 0));
}

/// Versions worth swapping out. While the lane to the host is idle and copies delay nothing else, these are only the
/// outputs of the last run: any other version could have left before that run. Copies that keep the host busy do delay
/// its next launches.
Set Choices::worth_leaving() const {
  const Nanos now = s_->base(step_);
  const bool in_nobodys_way = step_.streams == 1 && !step_.disturbed && step_.submit == Nanos{};
  const bool idle = in_nobodys_way && s_->d2h <= now && s_->host <= now;
  return idle ? fresh_ : ~Set{0};
}

void Choices::swap() {
  const Set pending = s_->placed & ~s_->filled;
  const Set useful = step_.useful[s_->position];
  Move move;
  if (pending == 0) {
    move.kind = MoveKind::kSwapOut;
    for_each(s_->filled & ~s_->on_host & useful & ~step_.undefined & worth_leaving(), [&](std::size_t v) {
      if (step_.bytes[v] == Bytes{}) return;
      move.subject = static_cast<std::uint8_t>(v);
      add(move);
    });
  }
  move.kind = MoveKind::kSwapIn;
  const std::size_t first = moves_.size();
  for_each(s_->on_host & ~s_->placed & useful, [&](std::size_t v) {
    move.subject = static_cast<std::uint8_t>(v);
    place_one(move, v, kept_for_pending());
  });
  // While an empty place waits for its op, a swap-in before that op is useful only if its drops make later places wait.
  if (pending != 0)
    moves_.erase(std::remove_if(moves_.begin() + static_cast<std::ptrdiff_t>(first), moves_.end(),
                                [&](const Move& each) { return !still_used(each.drops); }),
                 moves_.end());
}

/// Allocates buffers to bring back their initial, undefined content. When the step ends, it needs that of outputs,
/// even if no op has read it.
void Choices::alloc_undefined() {
  Set wanted = s_->position == step_.ops() ? step_.outputs : 0;
  for (std::size_t k = 0; k < step_.ops() && k <= s_->position; ++k)
    if (k == s_->position || step_.freedom.remat) wanted |= step_.op[k].reads;
  wanted &= step_.undefined & ~s_->placed & step_.useful[s_->position];
  Move move;
  move.kind = MoveKind::kAlloc;
  for_each(wanted, [&](std::size_t v) {
    move.subject = static_cast<std::uint8_t>(v);
    place_one(move, v, kept_for_pending());
  });
}

/// If bytes are counted on one stream, a new place waits for all places that ended before. So it may be better to take
/// the place for an op before a copy under way frees memory for another place.
void Choices::alloc_early() {
  if (step_.freedom.addresses || step_.chooses_bytes() || !step_.freedom.swap) return;
  if (!still_used(s_->filled) || (s_->on_host & ~s_->placed & step_.useful[s_->position]) == 0) return;
  const Set pending = s_->placed & ~s_->filled;
  Set wanted = 0;
  const std::size_t last = std::min<std::size_t>(step_.ops(), s_->position + 1u);
  for (std::size_t k = 0; k < last; ++k) {
    if (k < s_->position && (!step_.freedom.remat || step_.op[k].source)) continue;
    if ((pending & ~step_.op[k].makes) != 0) continue;
    wanted |= step_.op[k].makes;
  }
  Move move;
  move.kind = MoveKind::kAlloc;
  for_each(wanted & ~s_->placed, [&](std::size_t v) {
    move.subject = static_cast<std::uint8_t>(v);
    place_one(move, v, kept_for_pending());
  });
}

/// Lets the stream wait for a copy, so that copies issued later do not slow others down.
void Choices::await() {
  if (s_->position == step_.ops()) return;
  Move move;
  move.kind = MoveKind::kAwait;
  for_each(s_->on_host, [&](std::size_t v) {
    if (!SharedLink::is_mark(s_->host_ready[v]) && !(has(s_->filled, v) && SharedLink::is_mark(s_->ready[v]))) return;
    move.subject = static_cast<std::uint8_t>(v);
    add(move);
  });
}

/// Versions that must stay: those with an empty place that waits for its op, and the inputs of that op.
Set Choices::kept_for_pending() const {
  const Set pending = s_->placed & ~s_->filled;
  Set kept = pending;
  if (pending != 0)
    for (const TinyOp& op : step_.op)
      if ((op.makes & pending) != 0) kept |= op.reads;
  return kept;
}

/// Whether an op or copy under way uses one of these versions.
bool Choices::still_used(Set set) const {
  const Nanos base = s_->base(step_);
  bool used = false;
  for_each(set, [&](std::size_t v) { used |= std::max(s_->last_use[v], s_->ready[v]) > base; });
  return used;
}

void Choices::run(std::size_t k) {
  const TinyOp& op = step_.op[k];
  if ((op.reads & ~s_->filled) != 0) return;
  const Set pending = s_->placed & ~s_->filled;
  if ((pending & ~op.makes) != 0) return;
  if (k < s_->position && (op.source || (op.makes & ~s_->filled & step_.useful[s_->position]) == 0)) return;
  Move move;
  move.kind = MoveKind::kRun;
  move.subject = static_cast<std::uint8_t>(k);
  choose_writes(move, 0);
}

/// Tries every way to write the outputs from number `output` on.
void Choices::choose_writes(Move& move, std::size_t output) {
  const TinyOp& op = step_.op[move.subject];
  if (output < op.output_count) {
    const TinyOp::Output& out = op.outputs[output];
    const Set self = bit(out.version);
    const bool has_parent = out.parent >= 0 && has(s_->placed, static_cast<std::size_t>(out.parent)) &&
                            !has(move.drops, static_cast<std::size_t>(out.parent));
    const auto choose = [&](Writes writes) {
      move.writes[output] = writes;
      choose_writes(move, output + 1);
    };
    if ((s_->placed & ~s_->filled & self) != 0) {
      choose(Writes::kOwnPlace);
      return;
    }
    if ((s_->filled & self) != 0) {
      choose(Writes::kScratch);
      if (has_parent) choose(Writes::kOver);
      if (is_coming(out.version)) return;
      move.drops |= self;
    }
    if (has_parent) choose(Writes::kTakesOver);
    choose(Writes::kOwnPlace);
    move.drops &= ~self;
    return;
  }
  // An op may only run again for content that is absent or was dropped for this.
  if (move.subject < s_->position && (op.makes & ~s_->filled & step_.useful[s_->position]) == 0) return;
  Set kept = op.reads | (s_->placed & ~s_->filled);
  Bytes wanted;
  for (std::size_t i = 0; i < op.output_count; ++i) {
    const TinyOp::Output& out = op.outputs[i];
    const Writes writes = move.writes[i];
    if (writes == Writes::kTakesOver || writes == Writes::kOver) kept |= bit(static_cast<std::size_t>(out.parent));
    if (writes == Writes::kScratch || writes == Writes::kOver) kept |= bit(out.version);
    if (writes == Writes::kScratch || (writes == Writes::kOwnPlace && !has(s_->placed & ~move.drops, out.version)))
      wanted += step_.bytes[out.version];
  }
  if (step_.freedom.addresses)
    choose_places(move, 0, kept);
  else
    make_room(move, wanted, kept);
}

/// Whether a version is on its way back on a link whose directions slow each other down. Such a version must stay,
/// since a time of the State can only wait for copies of one direction.
bool Choices::is_coming(std::size_t v) const { return step_.disturbed && SharedLink::is_mark(s_->ready[v]); }

/// Versions that may be dropped without making the rest of the step impossible at once.
Set Choices::droppable(Set kept) const {
  Set lasting = s_->on_host | step_.undefined | ~step_.needed[s_->position];
  if (step_.freedom.remat) lasting |= step_.regenerable;
  Set may_go = s_->filled & lasting & ~kept;
  for_each(may_go, [&](std::size_t v) { may_go &= is_coming(v) ? ~bit(v) : ~Set{0}; });
  return may_go;
}

/// Adds the move with every minimal set of drops that makes room for `wanted` more bytes.
void Choices::make_room(Move move, Bytes wanted, Set kept) {
  const Set may_go = droppable(kept) & ~move.drops;
  if (step_.chooses_bytes()) return choose_bytes(move, wanted, may_go);
  const Bytes held = step_.size(s_->placed & ~move.drops);
  choose_drops(move, may_go, held + wanted - step_.capacity, [&] { add(move); });
}

/// The time before which the places of a move are not written.
Nanos Choices::first_use(const Move& move) const {
  if (move.kind == MoveKind::kRun) return s_->stream[step_.op[move.subject].stream];
  if (move.kind == MoveKind::kSwapIn) return std::max({s_->base(step_), s_->h2d, s_->host_ready[move.subject]});
  return s_->base(step_);
}

/// Adds the move for every time by which bytes for its places can be free, with every set of drops that frees enough
/// bytes by that time. The move takes the bytes that are free last, and some bytes of every dropped version. So a set
/// need not be minimal: an op of another stream may want the bytes that are free earlier and that the move leaves.
void Choices::choose_bytes(Move& move, Bytes wanted, Set may_go) {
  if (wanted == Bytes{}) return add(move);
  const auto free_from = [&](std::size_t v) { return std::max(s_->last_use[v], s_->ready[v]); };
  const Nanos first = first_use(move);
  std::vector<Nanos> times{first};
  for (const FreeBytes::Piece& piece : s_->free.pieces()) times.push_back(std::max(piece.from, first));
  for_each(may_go | move.drops, [&](std::size_t v) { times.push_back(std::max(free_from(v), first)); });
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const Set before = move.drops;
  for (const Nanos by : times) {
    Bytes free = s_->free.until(by, step_.free(s_->placed));
    std::vector<std::size_t> soon;  // the last to be free first
    for_each(may_go, [&](std::size_t v) {
      if (step_.bytes[v] > Bytes{} && free_from(v) <= by) soon.push_back(v);
    });
    std::sort(soon.begin(), soon.end(), [&](std::size_t a, std::size_t b) {
      return free_from(a) != free_from(b) ? free_from(a) > free_from(b) : a < b;
    });
    for_each(before, [&](std::size_t v) { free += free_from(v) <= by ? step_.bytes[v] : Bytes{}; });
    const auto choose = [&](auto& self, std::size_t next, Bytes freed) -> void {
      if (free + freed >= wanted) {
        move.leaves = free + freed - wanted;
        add(move);
      }
      for (std::size_t i = next; freed < wanted && i < soon.size(); ++i) {
        move.drops |= bit(soon[i]);
        self(self, i + 1, freed + step_.bytes[soon[i]]);
        move.drops &= ~bit(soon[i]);
      }
    };
    choose(choose, 0, Bytes{});
    move.leaves = {};
  }
}

/// Calls add() for every minimal set of drops that frees `missing` bytes.
template <class Add>
void Choices::choose_drops(Move& move, Set from, Bytes missing, Add add) const {
  if (missing <= Bytes{}) return add();
  // A set is minimal if it is not enough without its smallest member: members are chosen by falling size.
  const Set before = move.drops;
  std::array<std::uint8_t, kMostVersions> by_size;
  std::size_t count = 0;
  for_each(from, [&](std::size_t v) {
    if (step_.bytes[v] > Bytes{}) by_size[count++] = static_cast<std::uint8_t>(v);
  });
  std::sort(by_size.begin(), by_size.begin() + static_cast<std::ptrdiff_t>(count), [&](std::uint8_t a, std::uint8_t b) {
    return step_.bytes[a] != step_.bytes[b] ? step_.bytes[a] > step_.bytes[b] : a < b;
  });
  const auto choose = [&](auto& self, std::size_t first, Bytes left) -> void {
    for (std::size_t i = first; i < count; ++i) {
      move.drops |= bit(by_size[i]);
      if (step_.bytes[by_size[i]] >= left)
        add();
      else
        self(self, i + 1, left - step_.bytes[by_size[i]]);
      move.drops &= ~bit(by_size[i]);
    }
  };
  choose(choose, 0, missing);
  move.drops = before;
}

/// Calls visit(unit, drops) for every place that `v` can have: the place's first unit, and the versions to drop for it.
template <class Visit>
void Choices::for_each_place(std::size_t v, Set kept, Set taken, const Move& move, Visit visit) const {
  const auto length = static_cast<std::size_t>(step_.bytes[v] / step_.unit);
  const Set may_go = droppable(kept);
  if (length == 0) {
    visit(0, Set{0});
    return;
  }
  // An empty device is symmetric: both ends are equivalent.
  const bool empty = s_->placed == 0 && taken == 0 && s_->position == 0;
  const std::size_t most = step_.units < length ? 0 : (step_.units - length) / (empty ? 2 : 1) + 1;
  for (std::size_t first = 0; first < most; ++first) {
    Set drops = 0;
    bool fits = true;
    for_each(s_->placed & ~move.drops, [&](std::size_t other) {
      const std::size_t begin = s_->unit_at[other],
                        end = begin + static_cast<std::size_t>(step_.bytes[other] / step_.unit);
      if (begin >= first + length || end <= first) return;
      drops |= bit(other);
    });
    fits = (drops & ~may_go) == 0;
    // Other outputs of the same run already have places.
    for_each(taken, [&](std::size_t output) {
      const std::size_t begin = move.unit_at[output];
      const std::size_t size =
          static_cast<std::size_t>(step_.bytes[step_.op[move.subject].outputs[output].version] / step_.unit);
      fits &= begin >= first + length || begin + size <= first;
    });
    if (fits) visit(first, drops);
  }
}

/// Adds the move with every choice of places for outputs of the run, from number `output` on.
void Choices::choose_places(Move& move, std::size_t output, Set kept) {
  const TinyOp& op = step_.op[move.subject];
  const auto wants_place = [&](std::size_t i) {
    return move.writes[i] == Writes::kScratch ||
           (move.writes[i] == Writes::kOwnPlace && !has(s_->placed & ~(move.drops & op.makes), op.outputs[i].version));
  };
  while (output < op.output_count && !wants_place(output)) ++output;
  if (output == op.output_count) {
    add(move);
    return;
  }
  Set taken = 0;
  for (std::size_t i = 0; i < output; ++i)
    if (wants_place(i)) taken |= bit(i);
  const Set before = move.drops;
  for_each_place(op.outputs[output].version, kept, taken, move, [&](std::size_t first, Set drops) {
    Move next = move;
    next.unit_at[output] = static_cast<std::uint8_t>(first);
    next.drops = before | drops;
    choose_places(next, output + 1, kept);
  });
}

/// choose_places() for a move that places one version.
void Choices::place_one(Move move, std::size_t v, Set kept) {
  if (!step_.freedom.addresses) {
    make_room(move, step_.bytes[v], kept);
    return;
  }
  for_each_place(v, kept, 0, move, [&](std::size_t first, Set drops) {
    Move next = move;
    next.unit_at[0] = static_cast<std::uint8_t>(first);
    next.drops |= drops;
    add(next);
  });
}

}  // namespace tidepool::optimum
