#include "simulator/engine/checker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/engine/host_pool.hpp"

namespace tidepool {

Checker::Checker(const Trace& trace, const RunSpec& spec)
    : trace_{trace},
      spec_{spec},
      places_(trace.versions().size()),
      ran_(trace.ops().size()),
      defined_(spec.assume.replay_views ? trace.versions().size() : 0),
      began_on_host_(trace.buffers().size()),
      rules_{rerun_rules(spec.assume)},
      runs_(rules_ == RerunRules{} ? 0 : trace.ops().size()) {
  start_places();
}

/// An initial version from before the step is on the host until it gets a place.
void Checker::start_places() {
  for (std::size_t i = 0; i < trace_.buffers().size(); ++i)
    if (trace_.buffers()[i].born_before) {
      Place& place = places_[trace_.first_version(BufferId{i}).index()];
      if (!place.placed) place.on_host = began_on_host_[i] = true;
    }
}

void Checker::refuse(const Action& action, const std::string& reason) const {
  throw PlanError{fmt::format("{}: {}", to_text(action), reason)};
}

Checker::Place& Checker::at(const Action& action) {
  if (action.subject >= places_.size()) refuse(action, "no such version");
  if (trace_.version(VersionId{action.subject}).kind == VersionKind::kView)
    refuse(action, "it is a view and has no place");
  return places_[action.subject];
}

void Checker::occupy(const Action& action, VersionId v) {
  if (action.size < trace_.size(v))
    refuse(action, fmt::format("{} do not hold its {}", to_text(action.size), to_text(trace_.size(v))));
  if (action.offset == kNoAddress) {
    counted_ += action.size;
    if (counted_ > spec_.capacity) refuse(action, fmt::format("{} exceed the capacity", to_text(counted_)));
    return;
  }
  if (action.offset < Bytes{}) refuse(action, "its address is negative");
  map_.for_each_piece(action.offset, action.size,
                      [&](Bytes first, Bytes size) { occupy_piece(action, first, size, v); });
}

/// Takes memory, which must be free and reserved. If nothing is reserved, it must be free and within the capacity.
void Checker::occupy_piece(const Action& action, Bytes first, Bytes size, VersionId v) {
  const Bytes end = first + size;
  if (segments_.empty()) {
    if (end > spec_.capacity) refuse(action, fmt::format("it would end at {}, beyond the capacity", to_text(end)));
  } else {
    auto segment = segments_.upper_bound(first);
    if (segment == segments_.begin() || std::prev(segment)->second < end)
      refuse(action, "it would lie outside of reserved memory");
  }
  if (const std::optional<VersionId> other = live_.add(first, end, v))
    refuse(action, fmt::format("it would overlap version {}", other->value()));
}

void Checker::vacate(const Place& place) {
  if (place.offset == kNoAddress)
    counted_ -= place.size;
  else
    map_.for_each_piece(place.offset, place.size, [&](Bytes first, Bytes) { live_.remove(first); });
}

/// Refuses to evict sources and initial versions if the assumptions pin them.
void Checker::check_may_go(const Action& action) const {
  if (!spec_.assume.pin_sources) return;
  const OpId producer = trace_.version(VersionId{action.subject}).producer;
  if (!producer.valid() || trace_.op(producer).kind == OpKind::kSource)
    refuse(action, fmt::format("it stays under the assumptions of {}", spec_.assume.name));
}

/// Checks a rerun against the limits of the assumptions, if they have any: the order in the stage, the number of runs.
void Checker::check_rerun(const Action& action) {
  if (runs_.empty()) return;
  const std::size_t op = action.subject;
  if (rules_.in_order && last_again_ && op <= *last_again_)
    refuse(action,
           fmt::format("op {} ran again before it in this stage; under the assumptions of {} ops run again once "
                       "in a stage at most, in the order of the program",
                       *last_again_, spec_.assume.name));
  last_again_ = op;
  if (const std::int32_t runs = ++runs_[op] + 1; rules_.most_runs > 0 && runs > rules_.most_runs)
    refuse(action, fmt::format("it has run {} times; under the assumptions of {} ops run {} times at most", runs - 1,
                               spec_.assume.name, rules_.most_runs));
}

/// Records that the place of `base` ends. If views are replayed, its views must be recomputed.
void Checker::lose_views(VersionId base) {
  if (defined_.empty()) return;
  for (const OpId viewer : trace_.viewers(base))
    for (const Use& use : trace_.uses(viewer))
      if (use.access == Access::kView && trace_.root(use.out) == base) defined_[use.out.index()] = false;
}

void Checker::copy_to_host(const Action& action, Place& place) {
  place.on_host = true;
  if (place.off_device > Bytes{}) return;
  const HostMemory& host = spec_.machine.host;
  const Storage& storage = spec_.machine.storage;
  const Bytes size = trace_.size(VersionId{action.subject}), block = HostPool::block(host, size);
  if (block <= host.capacity - held_on_host_) {
    held_on_host_ += block;
    place.off_device = block;
  } else if (size <= storage.capacity - stored_) {
    stored_ += size;
    place.off_device = size;
    place.in_storage = true;
  } else {
    refuse(action, fmt::format("it takes {} on the host, where {} are in use of {}{}", to_text(block),
                               to_text(held_on_host_), to_text(host.capacity),
                               storage.capacity == Bytes{}
                                   ? ""
                                   : fmt::format(", and {} in storage, where {} are in use of {}", to_text(size),
                                                 to_text(stored_), to_text(storage.capacity))));
  }
}

void Checker::leave_host(Place& place) {
  (place.in_storage ? stored_ : held_on_host_) -= place.off_device;
  place.off_device = {};
  place.on_host = place.in_storage = false;
}

void Checker::map(const Action& action) {
  const Bytes memory = kMapPage * action.subject;
  const auto reserved = segments_.upper_bound(memory);
  if (reserved == segments_.begin() || std::prev(reserved)->second < memory + action.size)
    refuse(action, "the memory that it maps to is not reserved");
  const auto there = segments_.lower_bound(action.offset + action.size);
  if (there != segments_.begin() && std::prev(there)->second > action.offset)
    refuse(action, "these addresses are reserved memory");
  if (!map_.map(action.offset, action.size, memory)) refuse(action, "some of these addresses are mapped already");
}

void Checker::unmap(const Action& action) {
  const auto within = [&](const Place& place) {
    return place.placed && place.offset < action.offset + action.size && action.offset < place.offset + place.size;
  };
  if (std::any_of(places_.begin(), places_.end(), within)) refuse(action, "it is in use");
  if (!map_.unmap(action.offset, action.size)) refuse(action, "some of these addresses are not mapped");
}

void Checker::run(const Action& action) {
  if (action.subject >= ran_.size()) refuse(action, "no such op");
  const OpId id{action.subject};
  const bool again = ran_[id.index()];
  if (!again && id.index() != next_op_) refuse(action, fmt::format("op {} has not run yet", next_op_));
  if (again && trace_.op(id).kind == OpKind::kSource) refuse(action, "a source cannot run again");
  const std::span uses = trace_.uses(id);
  for (const Use& use : uses)
    if (use.in.valid() && !places_[trace_.root(use.in).index()].filled)
      refuse(action, fmt::format("its input, version {} of buffer {}, is not there", trace_.root(use.in).value(),
                                 trace_.version(use.in).buffer.value()));
  if (!defined_.empty())
    for (const Use& use : uses) {
      if (use.in.valid() && trace_.version(use.in).kind == VersionKind::kView && !defined_[use.in.index()])
        refuse(action, fmt::format("its input, the view {} of buffer {}, was not made again", use.in.value(),
                                   trace_.version(use.in).buffer.value()));
      if (use.out.valid()) defined_[use.out.index()] = true;
    }
  for (const VersionId made : trace_.made(id)) {
    Place& out = places_[made.index()];
    const VersionId parent_id = trace_.version(made).parent;
    Place* parent = parent_id.valid() && !spec_.assume.copy_on_write ? &places_[parent_id.index()] : nullptr;
    if (out.placed && !out.filled) {
      out.filled = true;
    } else if (const auto scratch = scratch_.find(made); out.filled && scratch != scratch_.end()) {
      vacate(scratch->second);
      scratch_.erase(scratch);
    } else if (parent != nullptr && parent->placed) {
      if (out.filled) {
        vacate(*parent);
      } else {
        leave_host(*parent);
        out.offset = parent->offset, out.size = parent->size;
        out.placed = out.filled = true;
        if (out.offset != kNoAddress)
          map_.for_each_piece(out.offset, out.size, [&](Bytes first, Bytes) { live_.set(first, made); });
      }
      parent->placed = parent->filled = false;
    } else {
      refuse(action, fmt::format("its output, version {} of buffer {}, has no place", made.value(),
                                 trace_.version(made).buffer.value()));
    }
  }
  if (!scratch_.empty())
    refuse(action, fmt::format("the scratch place for version {} is not used", scratch_.begin()->first.value()));
  if (again) return check_rerun(action);
  ran_[id.index()] = true;
  ++next_op_;
  last_again_.reset();
}

void Checker::next_iteration(const Action& action) {
  if (next_op_ != ran_.size()) refuse(action, fmt::format("op {} has not run yet", next_op_));
  check_outputs(true);
  std::vector<VersionId> last(trace_.buffers().size());
  for (std::size_t i = 0; i < trace_.versions().size(); ++i)
    if (trace_.versions()[i].kind != VersionKind::kView) last[trace_.versions()[i].buffer.index()] = VersionId{i};
  std::vector<Place> old(places_.size());
  old.swap(places_);
  std::fill(began_on_host_.begin(), began_on_host_.end(), false);
  for (std::size_t i = 0; i < last.size(); ++i) {
    const Buffer& buffer = trace_.buffers()[i];
    if (!buffer.born_before || !buffer.outlives) continue;
    Place& from = old[last[i].index()];
    places_[trace_.first_version(BufferId{i}).index()] = from;
    if (!from.placed) began_on_host_[i] = true;
    from.placed = false;
    from.off_device = {};
  }
  for (Place& place : old) {
    if (place.placed) vacate(place);
    leave_host(place);
  }
  start_places();
  std::fill(ran_.begin(), ran_.end(), false);
  std::fill(defined_.begin(), defined_.end(), false);
  std::fill(runs_.begin(), runs_.end(), 0);
  last_again_.reset();
  next_op_ = 0;
  ++iterations_;
}

/// Checks the op that an action precedes: it must be the next op of the program or the op that has just run. A run,
/// kNext, and a pool's action on its memory may name any op: run() and next_iteration() check the program's order.
void Checker::check_stand(const Action& action) const {
  const OpId next = next_op_ < ran_.size() ? OpId{next_op_} : OpId{};
  const bool follows = next_op_ > 0 && action.before == OpId{next_op_ - 1};
  if (action.before == next || follows) return;
  switch (action.verb) {
    case Verb::kRun:
    case Verb::kNext:
    case Verb::kReserve:
    case Verb::kRelease:
    case Verb::kMap:
    case Verb::kUnmap:
      return;
    default:
      refuse(action, next.valid() ? fmt::format("op {} is the next one", next.value()) : std::string{"no op is left"});
  }
}

void Checker::check(const Action& action) {
  check_stand(action);
  switch (action.verb) {
    case Verb::kRun:
      return run(action);
    case Verb::kNext:
      return next_iteration(action);
    case Verb::kAlloc: {
      Place& place = at(action);
      const VersionId v{action.subject};
      if (place.placed) refuse(action, "it has a place already");
      occupy(action, v);
      const bool initial = trace_.version(v).kind == VersionKind::kInitial;
      const BufferId buffer = trace_.version(v).buffer;
      if (initial && trace_.buffer(buffer).born_before) {
        if (!place.on_host) refuse(action, "it is gone and cannot be recomputed");
        if (next_op_ > 0 || (iterations_ > 1 && trace_.buffer(buffer).outlives))
          refuse(action, "only a copy from the host brings back content from before the step");
        began_on_host_[buffer.index()] = false;
      }
      if (initial) leave_host(place);
      place.offset = action.offset, place.size = action.size;
      place.placed = true, place.filled = initial;
      return;
    }
    case Verb::kScratch: {
      if (!at(action).filled) refuse(action, "it has no content, so it needs no scratch place");
      occupy(action, VersionId{action.subject});
      scratch_[VersionId{action.subject}] = {.offset = action.offset, .size = action.size, .placed = true};
      return;
    }
    case Verb::kFree: {
      Place& place = at(action);
      if (!place.placed && !place.on_host) refuse(action, "it has neither a place nor a host copy");
      check_may_go(action);
      lose_views(VersionId{action.subject});
      if (place.placed) vacate(place);
      leave_host(place);
      place = Place{};
      return;
    }
    case Verb::kDrop: {
      Place& place = at(action);
      if (!place.filled) refuse(action, "it is not there");
      check_may_go(action);
      lose_views(VersionId{action.subject});
      vacate(place);
      place.placed = place.filled = false;
      return;
    }
    case Verb::kCopy: {
      const Place& place = at(action);
      const VersionId parent = trace_.version(VersionId{action.subject}).parent;
      if (!place.placed || place.filled) refuse(action, "it has no empty place");
      if (!parent.valid() || !places_[parent.index()].filled)
        refuse(action, "the version that it replaces is not resident");
      return;
    }
    case Verb::kSwapOut: {
      Place& place = at(action);
      if (!place.filled) refuse(action, "it is not there");
      copy_to_host(action, place);
      return;
    }
    case Verb::kSwapIn: {
      Place& place = at(action);
      if (place.placed) refuse(action, "it has a place already");
      if (!place.on_host) refuse(action, "it is not on the host");
      occupy(action, VersionId{action.subject});
      place.offset = action.offset, place.size = action.size;
      place.placed = place.filled = true;
      return;
    }
    case Verb::kAwait:
      if (!at(action).on_host) refuse(action, "it is not on the host");
      if (!action.before.valid()) refuse(action, "no op follows");
      return;
    case Verb::kMap:
      return map(action);
    case Verb::kUnmap:
      return unmap(action);
    case Verb::kReserve: {
      if (map_.overlaps(action.offset, action.size)) refuse(action, "these addresses are mapped to other memory");
      reserved_ += action.size;
      if (reserved_ > spec_.capacity)
        refuse(action, fmt::format("{} reserved exceed the capacity", to_text(reserved_)));
      const auto next = segments_.lower_bound(action.offset);
      if ((next != segments_.end() && next->first < action.offset + action.size) ||
          (next != segments_.begin() && std::prev(next)->second > action.offset))
        refuse(action, "it is reserved already");
      // Adjacent ranges are joined: a place may lie in several ranges that were mapped page by page.
      Bytes first = action.offset, end = action.offset + action.size;
      if (next != segments_.end() && next->first == end) end = next->second, segments_.erase(next);
      if (const auto before = segments_.lower_bound(first);
          before != segments_.begin() && std::prev(before)->second == first) {
        first = std::prev(before)->first;
        segments_.erase(std::prev(before));
      }
      segments_[first] = end;
      return;
    }
    case Verb::kRelease: {
      const Bytes first = action.offset, end = action.offset + action.size;
      auto piece = segments_.upper_bound(first);
      if (piece == segments_.begin() || std::prev(piece)->second < end) refuse(action, "it is not reserved");
      --piece;
      if (live_.find(first, end) != nullptr) refuse(action, "it is in use");
      if (map_.shows(first, action.size)) refuse(action, "other addresses are mapped to it");
      const auto [piece_first, piece_end] = *piece;
      segments_.erase(piece);
      if (piece_first < first) segments_[piece_first] = first;
      if (piece_end > end) segments_[end] = piece_end;
      reserved_ -= action.size;
      return;
    }
  }
  refuse(action, "unknown verb");
}

void Checker::check_outputs(bool host_will_do) const {
  for (const VersionId named : trace_.outputs()) {
    const VersionId root = trace_.root(named);
    const Place& place = places_[root.index()];
    const bool may_stay = host_will_do || began_on_host_[trace_.version(root).buffer.index()];
    if (place.placed && !place.filled)
      throw PlanError{fmt::format("the step ends with an empty place for version {} of buffer {}, one of its outputs",
                                  root.value(), trace_.version(root).buffer.value())};
    if (!place.filled && !(may_stay && place.on_host))
      throw PlanError{fmt::format("the step ends without version {} of buffer {}, one of its outputs", root.value(),
                                  trace_.version(root).buffer.value())};
  }
}

void Checker::finish() const {
  if (next_op_ != ran_.size()) throw PlanError{fmt::format("the plan ends before op {}", next_op_)};
  check_outputs(iterations_ > 1 || spec_.steady);
}

}  // namespace tidepool
