#include "simulator/timeline.hpp"

#include <algorithm>

namespace tidepool {

Timeline::Timeline(const Trace& trace, const Machine& machine, const Assumptions& assume,
                   std::vector<VersionState>& states)
    : trace_{trace},
      machine_{machine},
      copy_on_write_{assume.copy_on_write},
      address_reuse_matters_{trace.data().streams.size() > 1},
      states_{states},
      streams_(trace.data().streams.size(), assume.clock_start),
      h2d_{assume.clock_start},
      d2h_{assume.clock_start},
      op_end_(trace.data().orders.empty() ? 0 : trace.ops().size()),
      ran_(trace.ops().size()) {
  states_.assign(trace.versions().size(), VersionState{});
  for (std::size_t i = 0; i < trace.versions().size(); ++i) {
    const Version& version = trace.versions()[i];
    states_[i].on_host = version.kind == VersionKind::kInitial && trace.buffer(version.buffer).born_before;
  }
}

Nanos Timeline::latest() const { return *std::max_element(streams_.begin(), streams_.end()); }

Totals Timeline::totals() const {
  Totals totals = totals_;
  totals.makespan = std::max({latest(), h2d_, d2h_}) - iteration_start_;
  return totals;
}

void Timeline::hold(Bytes size) {
  held_ += size;
  if (held_ > totals_.peak) totals_.peak = held_;
}

/// When all of a place that begins may be written.
Nanos Timeline::claim(Bytes offset, Bytes size) {
  if (map_.empty()) return free_from_.take(offset, size);
  Nanos latest;
  map_.for_each_piece(offset, size,
                      [&](Bytes piece, Bytes length) { latest = std::max(latest, free_from_.take(piece, length)); });
  return latest;
}

/// A place has ended; it may be written again from `time` on.
void Timeline::let_go(Bytes offset, Bytes size, Nanos time) {
  if (map_.empty()) return free_from_.release(offset, size, time);
  map_.for_each_piece(offset, size, [&](Bytes piece, Bytes length) { free_from_.release(piece, length, time); });
}

void Timeline::give_place(VersionId v, const Action& action) {
  VersionState& state = states_[v.index()];
  state.offset = action.offset;
  state.held = action.size;
  state.placed = true;
  if (action.offset == kNoAddress) {
    state.ready = counted_free_from_;
  } else {
    state.ready = claim(action.offset, action.size);
    if (reserved_ == Bytes{}) totals_.footprint = std::max(totals_.footprint, action.offset + action.size);
  }
  state.last_use = state.ready;
  hold(trace_.size(v));
  if (action.offset == kNoAddress) totals_.footprint = totals_.peak;
}

void Timeline::end_place(VersionId v) {
  VersionState& state = states_[v.index()];
  if (!state.placed) return;
  const Nanos free_from = std::max(state.last_use, state.ready);
  if (state.offset == kNoAddress) {
    if (free_from > streams_[0] || address_reuse_matters_) counted_free_from_ = std::max(counted_free_from_, free_from);
  } else if (address_reuse_matters_ || free_from > streams_[0]) {
    let_go(state.offset, state.held, free_from);
  }
  held_ -= trace_.size(v);
  state.placed = state.filled = false;
  state.held = {};
}

void Timeline::run(OpId id) {
  const Op& op = trace_.op(id);
  Nanos& stream = streams_[op.stream.index()];
  Nanos start = stream;
  Nanos* cause = nullptr;
  const auto wait_for = [&](Nanos time, Nanos* for_what) {
    if (time > start) start = time, cause = for_what;
  };
  const std::span uses = trace_.uses(id);
  for (const Use& use : uses) {
    if (use.in.valid()) {
      const VersionState& in = states_[trace_.root(use.in).index()];
      wait_for(in.ready, in.from_host ? &totals_.stall.h2d : nullptr);
    }
  }
  for (const VersionId made : trace_.made(id)) {
    const VersionState& out = states_[made.index()];
    const VersionId parent = trace_.version(made).parent;
    if (out.placed && !out.filled)
      wait_for(out.ready, &totals_.stall.d2h);
    else if (parent.valid() && !copy_on_write_)
      wait_for(states_[parent.index()].last_use, &totals_.stall.d2h);
  }
  for (const Scratch& scratch : scratch_)
    wait_for(scratch.offset == kNoAddress ? counted_free_from_ : claim(scratch.offset, scratch.size),
             &totals_.stall.d2h);
  if (!op_end_.empty()) {
    const auto& orders = trace_.data().orders;
    while (next_order_ < orders.size() && orders[next_order_].after < id) ++next_order_;
    for (std::size_t i = next_order_; i < orders.size() && orders[i].after == id; ++i)
      wait_for(op_end_[orders[i].before.index()], nullptr);
  }
  const Nanos waited = start - stream;
  totals_.stall.compute += waited;
  if (cause != nullptr) *cause += waited;
  const Nanos end = start + op.duration;
  stream = end;
  if (!op_end_.empty()) op_end_[id.index()] = end;
  if (ran_[id.index()]) {
    totals_.recompute += op.duration;
    ++totals_.recompute_count;
  }
  ran_[id.index()] = true;

  for (const Use& use : uses)
    if (use.in.valid()) {
      VersionState& in = states_[trace_.root(use.in).index()];
      if (end > in.last_use) in.last_use = end;
    }
  for (const VersionId made : trace_.made(id)) {
    VersionState& out = states_[made.index()];
    const VersionId parent_id = trace_.version(made).parent;
    if (!out.placed || out.filled) {
      const bool has_scratch = out.filled && std::any_of(scratch_.begin(), scratch_.end(), [&](const Scratch& scratch) {
                                 return scratch.version == made;
                               });
      VersionState* parent = parent_id.valid() && !copy_on_write_ ? &states_[parent_id.index()] : nullptr;
      if (has_scratch || parent == nullptr || !parent->placed) continue;  // already there, written a second time
      if (out.filled) {
        end_place(parent_id);
        continue;
      }
      out.offset = parent->offset;
      out.held = parent->held;
      out.tag = parent->tag;
      out.placed = true;
      parent->placed = parent->filled = false;
      parent->held = {};
      parent->on_host = false;
    }
    out.filled = true;
    out.from_host = false;
    out.ready = end;
    out.last_use = end;
  }
  for (const Scratch& scratch : scratch_) {
    held_ -= trace_.size(scratch.version);
    if (scratch.offset != kNoAddress && address_reuse_matters_) let_go(scratch.offset, scratch.size, end);
    if (scratch.offset == kNoAddress && address_reuse_matters_) counted_free_from_ = std::max(counted_free_from_, end);
  }
  scratch_.clear();
  if (!free_from_.empty()) free_from_.forget_before(*std::min_element(streams_.begin(), streams_.end()));
}

void Timeline::next_iteration() {
  std::vector<std::pair<VersionId, VersionState>> carried;
  std::vector<VersionId> last(trace_.buffers().size());
  for (std::size_t i = 0; i < trace_.versions().size(); ++i)
    if (trace_.versions()[i].kind != VersionKind::kView) last[trace_.versions()[i].buffer.index()] = VersionId{i};
  for (std::size_t i = 0; i < last.size(); ++i) {
    const Buffer& buffer = trace_.buffers()[i];
    if (buffer.born_before && buffer.outlives)
      carried.emplace_back(trace_.first_version(BufferId{i}), states_[last[i].index()]);
  }
  for (const auto& [first, state] : carried) held_ -= state.placed ? trace_.size(first) : Bytes{};
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const BufferId buffer = trace_.versions()[i].buffer;
    const bool stays =
        last[buffer.index()] == VersionId{i} && trace_.buffer(buffer).born_before && trace_.buffer(buffer).outlives;
    if (!stays) end_place(VersionId{i});
    states_[i] = VersionState{};
  }
  for (const auto& [first, state] : carried) {
    VersionState& next = states_[first.index()];
    next.ready = state.ready, next.last_use = state.last_use, next.host_ready = state.host_ready;
    next.offset = state.offset, next.held = state.held, next.tag = state.tag;
    next.placed = state.placed, next.filled = state.filled, next.on_host = state.on_host,
    next.from_host = state.from_host;
    if (next.placed) held_ += trace_.size(first);
  }
  for (std::size_t i = 0; i < trace_.buffers().size(); ++i) {
    const Buffer& buffer = trace_.buffers()[i];
    if (buffer.born_before && !buffer.outlives) states_[trace_.first_version(BufferId{i}).index()].on_host = true;
  }
  std::fill(ran_.begin(), ran_.end(), false);
  next_order_ = 0;
  iteration_start_ = std::max({latest(), h2d_, d2h_});
  const Totals whole = totals_;
  totals_ = Totals{};
  totals_.peak = whole.peak;
  totals_.footprint = whole.footprint;
  totals_.actions = whole.actions;
}

void Timeline::apply(const Action& action) {
  ++totals_.actions;
  const VersionId v{action.subject};
  switch (action.verb) {
    case Verb::kRun:
      run(OpId{action.subject});
      break;
    case Verb::kAlloc: {
      give_place(v, action);
      VersionState& state = states_[v.index()];
      if (trace_.version(v).kind == VersionKind::kInitial) state.filled = true, state.on_host = false;
      break;
    }
    case Verb::kScratch:
      scratch_.push_back({v, action.offset, action.size});
      hold(trace_.size(v));
      if (action.offset == kNoAddress)
        totals_.footprint = totals_.peak;
      else if (reserved_ == Bytes{})
        totals_.footprint = std::max(totals_.footprint, action.offset + action.size);
      break;
    case Verb::kFree:
      end_place(v);
      states_[v.index()].on_host = false;
      break;
    case Verb::kDrop:
      end_place(v);
      ++totals_.eviction_count;
      break;
    case Verb::kCopy: {
      VersionState& from = states_[trace_.version(v).parent.index()];
      VersionState& to = states_[v.index()];
      Nanos& stream = streams_[trace_.op(action.before).stream.index()];
      stream = std::max({stream, from.ready, to.ready}) + transfer_time(trace_.size(v), machine_.device_copy);
      from.last_use = std::max(from.last_use, stream);
      to.ready = to.last_use = stream;
      break;
    }
    case Verb::kSwapOut: {
      VersionState& state = states_[v.index()];
      d2h_ = std::max({d2h_, state.ready, now(action.before)}) + machine_.d2h.time(trace_.size(v));
      state.last_use = std::max(state.last_use, d2h_);
      state.host_ready = d2h_;
      state.on_host = true;
      totals_.swap_out += trace_.size(v);
      break;
    }
    case Verb::kSwapIn: {
      give_place(v, action);
      VersionState& state = states_[v.index()];
      h2d_ = std::max({h2d_, state.host_ready, state.ready, now(action.before)}) + machine_.h2d.time(trace_.size(v));
      state.ready = state.last_use = h2d_;
      state.filled = state.from_host = true;
      totals_.swap_in += trace_.size(v);
      break;
    }
    case Verb::kReserve: {
      reserved_ += action.size;
      totals_.footprint = std::max(totals_.footprint, reserved_);
      const Nanos cost = action.subject == 0 ? machine_.segment_alloc : machine_.page_map * action.subject;
      for (Nanos& stream : streams_) stream += cost;
      totals_.stall.memory += cost;
      break;
    }
    case Verb::kRelease: {
      reserved_ -= action.size;
      const Nanos cost = action.subject == 0 ? machine_.segment_free : machine_.page_unmap * action.subject;
      const Nanos all = std::max({latest(), h2d_, d2h_}) + cost;
      for (Nanos& stream : streams_) stream = all;
      totals_.stall.memory += cost;
      break;
    }
    case Verb::kMap:
    case Verb::kUnmap: {
      const bool maps = action.verb == Verb::kMap;
      if (maps)
        map_.map(action.offset, action.size, kMapPage * action.subject);
      else
        map_.unmap(action.offset, action.size);
      const Nanos cost = (maps ? machine_.page_map : machine_.page_unmap) * (action.size / kMapPage);
      for (Nanos& stream : streams_) stream += cost;
      totals_.stall.memory += cost;
      break;
    }
    case Verb::kNext:
      next_iteration();
      break;
  }
}

}  // namespace tidepool
