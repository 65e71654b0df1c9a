#include "simulator/engine/timeline.hpp"

#include <algorithm>

namespace tidepool {
namespace {

bool slows_kernels(const Machine& machine) { return machine.h2d.slowdown_ppm != 0 || machine.d2h.slowdown_ppm != 0; }

/// Whether copies slow each other or kernels down, or are cut into pieces.
bool needs_links(const Machine& machine) {
  return machine.h2d.duplex_ppm != kFullRate || machine.d2h.duplex_ppm != kFullRate || machine.chunk != Bytes{} ||
         slows_kernels(machine);
}

}  // namespace

Timeline::Timeline(const Trace& trace, const Machine& machine, const Assumptions& assume,
                   std::vector<VersionState>& states, Bytes capacity)
    : trace_{trace},
      machine_{machine},
      copy_on_write_{assume.copy_on_write},
      address_reuse_matters_{trace.data().streams.size() > 1},
      states_{states},
      streams_(trace.data().streams.size(), assume.clock_start),
      h2d_{assume.clock_start},
      d2h_{assume.clock_start},
      host_{assume.clock_start},
      host_pool_{machine.host},
      storage_{machine.storage, assume.clock_start},
      links_{machine, assume.clock_start, trace.data().streams.size() > 1 || machine.storage.capacity > Bytes{}},
      slows_kernels_{slows_kernels(machine)},
      disturbed_{needs_links(machine)},
      under_way_(disturbed_ ? trace.versions().size() : 0),
      counted_{capacity, trace.data().streams.size() <= 1},
      op_end_(trace.data().orders.empty() ? 0 : trace.ops().size()),
      ran_(trace.ops().size()) {
  states_.assign(trace.versions().size(), VersionState{});
  for (std::size_t i = 0; i < trace.versions().size(); ++i) {
    const Version& version = trace.versions()[i];
    states_[i].on_host = version.kind == VersionKind::kInitial && trace.buffer(version.buffer).born_before;
  }
}

Nanos Timeline::latest() const { return *std::max_element(streams_.begin(), streams_.end()); }

/// The time at which all lanes have finished their work so far.
Nanos Timeline::drained() const {
  const Nanos copies = std::max({h2d_, d2h_, storage_.drained()});
  return std::max(latest(), disturbed_ && !links_.empty() ? std::max(copies, links_.drained()) : copies);
}

bool Timeline::has_left(VersionId v, Nanos time) {
  const VersionState& state = states_[v.index()];
  if (!disturbed_) return state.host_ready <= time;
  const std::uint32_t copy = under_way_[v.index()].to_host;
  if (!links_.ended(Direction::kOut, copy)) links_.advance(*std::min_element(streams_.begin(), streams_.end()));
  return links_.ended(Direction::kOut, copy) && links_.resolve({state.host_ready, {copy, 0}}) <= time;
}

bool Timeline::fits_on_host(VersionId v) const {
  const VersionState& state = states_[v.index()];
  return state.in_host_pool || state.in_storage || host_pool_.fits(trace_.size(v)) || storage_.fits(trace_.size(v));
}

Totals Timeline::totals() const {
  Totals totals = totals_;
  totals.makespan = drained() - iteration_start_;
  totals.host_peak = host_pool_.peak();
  totals.storage_peak = storage_.peak();
  return totals;
}

Nanos Timeline::overhead(Nanos baseline) const {
  if (streams_.size() == 1 && machine_.launch == Nanos{}) return totals_.recompute + totals_.stall.compute;
  return std::max(latest() - iteration_start_ - baseline, Nanos{});
}

void Timeline::hold(Bytes size) {
  held_ += size;
  if (held_ > totals_.peak) totals_.peak = held_;
}

/// The moment from which all bytes of a new place may be written.
Moment Timeline::claim(Bytes offset, Bytes size) {
  if (map_.empty()) return free_from_.take(offset, size);
  Moment last;
  map_.for_each_piece(
      offset, size, [&](Bytes piece, Bytes length) { last = tidepool::latest(last, free_from_.take(piece, length)); });
  return last;
}

/// Ends a place; its bytes may be written again from `time` on.
void Timeline::let_go(Bytes offset, Bytes size, const Moment& time) {
  if (map_.empty()) return free_from_.release(offset, size, time);
  map_.for_each_piece(offset, size, [&](Bytes piece, Bytes length) { free_from_.release(piece, length, time); });
}

void Timeline::give_place(VersionId v, const Action& action) {
  VersionState& state = states_[v.index()];
  state.offset = action.offset;
  state.held = action.size;
  state.placed = true;
  Moment ready;
  if (action.offset == kNoAddress) {
    ready = counted_.take(trace_.size(v), held_);
  } else {
    ready = claim(action.offset, action.size);
    if (reserved_ == Bytes{}) totals_.footprint = std::max(totals_.footprint, action.offset + action.size);
  }
  state.ready = state.last_use = ready.time;
  if (disturbed_) under_way_[v.index()].ready = under_way_[v.index()].last_use = ready.after;
  hold(trace_.size(v));
  if (action.offset == kNoAddress) totals_.footprint = totals_.peak;
}

void Timeline::end_place(VersionId v) {
  VersionState& state = states_[v.index()];
  if (!state.placed) return;
  Moment free_from{std::max(state.last_use, state.ready), {}};
  if (disturbed_) free_from = links_.simplified({free_from.time, under_way_[v.index()].last_use});
  const bool still_used = free_from.time > streams_[0] || address_reuse_matters_ || !free_from.after.none();
  if (still_used && state.offset == kNoAddress)
    counted_.release(trace_.size(v), free_from);
  else if (still_used)
    leave_place(v, free_from);
  held_ -= trace_.size(v);
  state.placed = state.filled = false;
  state.held = {};
}

/// Ends a place whose bytes may be written from `free_from` on. If a swap-out in several pieces frees the place, each
/// piece may be written when its copy has ended.
void Timeline::leave_place(VersionId v, const Moment& free_from) {
  const VersionState& state = states_[v.index()];
  const auto [count, size] = machine_.cut(trace_.size(v));
  if (count == 1 || free_from.after.out == 0 || free_from.after.out != under_way_[v.index()].to_host)
    return let_go(state.offset, state.held, free_from);
  for (std::int64_t i = 0; i < count; ++i) {
    const Copies left{free_from.after.out - static_cast<std::uint32_t>(count - 1 - i), free_from.after.in};
    let_go(state.offset + size * i, i + 1 < count ? size : state.held - size * i, {free_from.time, left});
  }
}

/// Forgets free memory whose moments have passed on every stream.
void Timeline::forget_past() {
  if (free_from_.empty() && counted_.empty()) return;
  const Nanos all_past = *std::min_element(streams_.begin(), streams_.end());
  if (disturbed_) links_.advance(all_past);
  const auto is_past = [&](const Moment& free_from) {
    const Moment known = links_.simplified(free_from);
    return known.after.none() && known.time <= all_past;
  };
  free_from_.forget(is_past);
  counted_.forget(is_past);
}

void Timeline::run(OpId id) {
  const Op& op = trace_.op(id);
  Nanos& stream = streams_[op.stream.index()];
  Nanos start = stream;
  Nanos* cause = nullptr;
  const auto wait_for = [&](Nanos time, Nanos* for_what) {
    if (time > start) start = time, cause = for_what;
  };
  const bool copies_matter = disturbed_ && !links_.empty();
  if (machine_.launch > Nanos{}) {
    host_ += machine_.launch;
    note_host(stream);
    wait_for(host_, nullptr);
  }
  const std::span uses = trace_.uses(id);
  for (const Use& use : uses) {
    if (use.in.valid()) {
      const VersionId root = trace_.root(use.in);
      const VersionState& in = states_[root.index()];
      Nanos ready = in.ready;
      if (copies_matter) ready = links_.resolve({ready, under_way_[root.index()].ready});
      wait_for(ready, in.from_host ? &totals_.stall.h2d : nullptr);
    }
  }
  for (const VersionId made : trace_.made(id)) {
    const VersionState& out = states_[made.index()];
    const VersionId parent = trace_.version(made).parent;
    Moment free_from;
    if (out.placed && !out.filled)
      free_from = {out.ready, copies_matter ? under_way_[made.index()].ready : Copies{}};
    else if (parent.valid() && !copy_on_write_)
      free_from = {states_[parent.index()].last_use, copies_matter ? under_way_[parent.index()].last_use : Copies{}};
    wait_for(copies_matter ? links_.resolve(free_from) : free_from.time, &totals_.stall.d2h);
  }
  for (const Scratch& scratch : scratch_)
    wait_for(links_.resolve(scratch.offset == kNoAddress ? scratch.free_from : claim(scratch.offset, scratch.size)),
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
  Nanos end = start + op.duration;
  if (slows_kernels_ && copies_matter)
    end = links_.end_of_kernel(start, op.duration, machine_.d2h.slowdown_ppm, machine_.h2d.slowdown_ppm);
  totals_.slowdown += end - start - op.duration;
  if (held_ops_ != nullptr) {
    (*held_ops_)[id.index()].unhindered = unhindered_start(id);
    (*held_ops_)[id.index()].alone = end;
    end = std::max(end, (*held_ops_)[id.index()].until);
  }
  stream = end;
  if (op.kind == OpKind::kHostWait) host_ = std::max(host_, end);
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
      if (has_scratch || parent == nullptr || !parent->placed) continue;  // resident, so written a second time
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
      leave_host(parent_id);
    }
    out.filled = true;
    out.from_host = false;
    out.ready = end;
    out.last_use = end;
    if (copies_matter) under_way_[made.index()].ready = under_way_[made.index()].last_use = {};
  }
  for (const Scratch& scratch : scratch_) {
    held_ -= trace_.size(scratch.version);
    if (scratch.offset != kNoAddress && address_reuse_matters_) let_go(scratch.offset, scratch.size, {end, {}});
    if (scratch.offset == kNoAddress && address_reuse_matters_)
      counted_.release(trace_.size(scratch.version), {end, {}});
  }
  scratch_.clear();
  forget_past();
}

/// The start of an op that run() starts, if it waited only for its stream, its launch, and other ops.
Nanos Timeline::unhindered_start(OpId id) const {
  Nanos start = streams_[trace_.op(id).stream.index()];
  if (machine_.launch > Nanos{}) start = std::max(start, host_);
  for (const Use& use : trace_.uses(id)) {
    if (!use.in.valid()) continue;
    const VersionState& in = states_[trace_.root(use.in).index()];
    if (!in.from_host) start = std::max(start, in.ready);
  }
  const auto& orders = trace_.data().orders;
  for (std::size_t i = next_order_; i < orders.size() && orders[i].after == id; ++i)
    start = std::max(start, op_end_[orders[i].before.index()]);
  return start;
}

void Timeline::next_iteration() {
  struct Carried {
    VersionId first;
    VersionState state;
    UnderWay copies;
  };
  std::vector<Carried> carried;
  std::vector<VersionId> last(trace_.buffers().size());
  for (std::size_t i = 0; i < trace_.versions().size(); ++i)
    if (trace_.versions()[i].kind != VersionKind::kView) last[trace_.versions()[i].buffer.index()] = VersionId{i};
  for (std::size_t i = 0; i < last.size(); ++i) {
    const Buffer& buffer = trace_.buffers()[i];
    if (buffer.born_before && buffer.outlives)
      carried.push_back({trace_.first_version(BufferId{i}), states_[last[i].index()],
                         disturbed_ ? under_way_[last[i].index()] : UnderWay{}});
  }
  for (const auto& [first, state, copies] : carried) held_ -= state.placed ? trace_.size(first) : Bytes{};
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const BufferId buffer = trace_.versions()[i].buffer;
    const bool stays =
        last[buffer.index()] == VersionId{i} && trace_.buffer(buffer).born_before && trace_.buffer(buffer).outlives;
    if (!stays) end_place(VersionId{i}), leave_host(VersionId{i});
    states_[i] = VersionState{};
  }
  std::fill(under_way_.begin(), under_way_.end(), UnderWay{});
  for (const auto& [first, state, copies] : carried) {
    if (disturbed_) under_way_[first.index()] = copies;
    VersionState& next = states_[first.index()];
    next.ready = state.ready, next.last_use = state.last_use, next.host_ready = state.host_ready;
    next.offset = state.offset, next.held = state.held, next.tag = state.tag;
    next.placed = state.placed, next.filled = state.filled, next.on_host = state.on_host,
    next.from_host = state.from_host, next.in_host_pool = state.in_host_pool, next.in_storage = state.in_storage;
    if (next.placed) held_ += trace_.size(first);
  }
  for (std::size_t i = 0; i < trace_.buffers().size(); ++i) {
    const Buffer& buffer = trace_.buffers()[i];
    if (buffer.born_before && !buffer.outlives) states_[trace_.first_version(BufferId{i}).index()].on_host = true;
  }
  std::fill(ran_.begin(), ran_.end(), false);
  host_delayed_before_ = std::exchange(host_delayed_, false);
  next_order_ = 0;
  iteration_start_ = drained();
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
      if (trace_.version(v).kind == VersionKind::kInitial) state.filled = true, leave_host(v);
      break;
    }
    case Verb::kScratch:
      scratch_.push_back({v, action.offset, action.size, {}});
      if (action.offset == kNoAddress) scratch_.back().free_from = counted_.take(trace_.size(v), held_);
      hold(trace_.size(v));
      if (action.offset == kNoAddress)
        totals_.footprint = totals_.peak;
      else if (reserved_ == Bytes{})
        totals_.footprint = std::max(totals_.footprint, action.offset + action.size);
      break;
    case Verb::kFree:
      end_place(v);
      leave_host(v);
      break;
    case Verb::kDrop:
      end_place(v);
      ++totals_.eviction_count;
      break;
    case Verb::kCopy: {
      VersionState& from = states_[trace_.version(v).parent.index()];
      VersionState& to = states_[v.index()];
      Nanos& stream = streams_[trace_.op(trace_.version(v).producer).stream.index()];
      stream = std::max({stream, from.ready, to.ready});
      if (disturbed_) {
        const UnderWay &source = under_way_[trace_.version(v).parent.index()], &target = under_way_[v.index()];
        stream = links_.resolve({stream, tidepool::latest(source.ready, target.ready)});
      }
      stream += transfer_time(trace_.size(v), machine_.device_copy);
      from.last_use = std::max(from.last_use, stream);
      to.ready = to.last_use = stream;
      break;
    }
    case Verb::kSwapOut:
      swap_out(v, now(action.before));
      break;
    case Verb::kSwapIn:
      swap_in(v, action, now(action.before));
      break;
    case Verb::kAwait:
      await(v, streams_[trace_.op(action.before).stream.index()]);
      break;
    case Verb::kReserve: {
      reserved_ += action.size;
      totals_.footprint = std::max(totals_.footprint, reserved_);
      const Nanos cost = action.subject == 0 ? machine_.segment_alloc : machine_.page_map * action.subject;
      for (Nanos& stream : streams_) stream += cost;
      host_ += cost;
      totals_.stall.memory += cost;
      break;
    }
    case Verb::kRelease: {
      reserved_ -= action.size;
      const Nanos cost = action.subject == 0 ? machine_.segment_free : machine_.page_unmap * action.subject;
      Nanos all = std::max({latest(), h2d_, d2h_, storage_.drained()}) + cost;
      if (disturbed_) all = std::max(all, links_.drain() + cost);
      for (Nanos& stream : streams_) stream = all;
      host_ = all;
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
      host_ += cost;
      totals_.stall.memory += cost;
      break;
    }
    case Verb::kNext:
      next_iteration();
      break;
  }
}

}  // namespace tidepool
