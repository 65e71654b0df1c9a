// The part of the timeline for copies: to the host or the storage beyond it, and back.
#include <algorithm>

#include "simulator/engine/timeline.hpp"

namespace tidepool {

std::uint32_t Timeline::add_copy(Direction direction, const Moment& after, Nanos time) {
  const Nanos latency = std::min(time, direction == Direction::kOut ? machine_.d2h.latency : machine_.h2d.latency);
  return links_.add(direction, after, latency, time - latency);
}

/// Copies to the host; `issued` is the time at which the program reaches the copy's position in the plan.
void Timeline::swap_out(VersionId v, Nanos issued) {
  VersionState& state = states_[v.index()];
  const Bytes size = trace_.size(v);
  totals_.swap_out += size;
  if (state.in_storage || (!state.in_host_pool && !host_pool_.fits(size))) return write_to_storage(v, issued);
  const Cut pieces = machine_.cut(size);
  if (!state.in_host_pool) host_ += host_pool_.take(size);
  state.in_host_pool = true;
  issued = std::max(issued, state.ready);
  for (std::int64_t i = 0; i < pieces.count; ++i) {
    const Nanos time = machine_.d2h.time(std::min(pieces.size, size - pieces.size * i));
    host_ += machine_.submit;
    note_host(issued);
    const Nanos begin = std::max(issued, host_);
    d2h_ = std::max(d2h_, begin) + time;
    if (disturbed_)
      under_way_[v.index()].to_host = add_copy(Direction::kOut, {begin, under_way_[v.index()].ready}, time);
  }
  if (disturbed_)
    under_way_[v.index()].last_use.out = under_way_[v.index()].to_host;
  else
    state.last_use = std::max(state.last_use, d2h_);
  state.host_ready = d2h_;
  state.on_host = true;
}

/// swap_out() to storage, if host memory is full or the version's copy is in storage already.
void Timeline::write_to_storage(VersionId v, Nanos issued) {
  VersionState& state = states_[v.index()];
  if (state.in_storage) storage_.give_back(trace_.size(v));
  host_ += machine_.submit;
  note_host(issued);
  Nanos begin = std::max({issued, state.ready, host_});
  if (disturbed_) {
    begin = links_.resolve({begin, under_way_[v.index()].ready});
    under_way_[v.index()].to_host = 0;
  }
  state.host_ready = storage_.write(trace_.size(v), begin);
  state.last_use = std::max(state.last_use, state.host_ready);
  state.on_host = state.in_storage = true;
}

/// Gives a version a place and copies it there from the host.
void Timeline::swap_in(VersionId v, const Action& action, Nanos issued) {
  const Bytes size = trace_.size(v);
  totals_.swap_in += size;
  if (states_[v.index()].in_storage) return read_from_storage(v, action, issued);
  const Cut pieces = machine_.cut(size);
  piece_places_.assign(static_cast<std::size_t>(pieces.count), Moment{});
  if (pieces.count > 1 && action.offset != kNoAddress)
    for (std::int64_t i = 0; i < pieces.count; ++i)
      piece_places_[static_cast<std::size_t>(i)] =
          claim(action.offset + pieces.size * i, std::min(pieces.size, size - pieces.size * i));
  give_place(v, action);
  VersionState& state = states_[v.index()];
  issued = std::max({issued, state.host_ready, state.ready});
  Copies before, added;
  if (disturbed_) before = tidepool::latest(under_way_[v.index()].ready, {under_way_[v.index()].to_host, 0});
  for (std::int64_t i = 0; i < pieces.count; ++i) {
    const Nanos time = machine_.h2d.time(std::min(pieces.size, size - pieces.size * i));
    const Moment& place = piece_places_[static_cast<std::size_t>(i)];
    host_ += machine_.submit;
    note_host(issued);
    const Nanos begin = std::max({issued, host_, place.time});
    h2d_ = std::max(h2d_, begin) + time;
    if (disturbed_) added.in = add_copy(Direction::kIn, {begin, tidepool::latest(before, place.after)}, time);
  }
  if (disturbed_) under_way_[v.index()].ready = under_way_[v.index()].last_use = added;
  state.ready = state.last_use = h2d_;
  state.filled = state.from_host = true;
}

/// swap_in() from storage.
void Timeline::read_from_storage(VersionId v, const Action& action, Nanos issued) {
  give_place(v, action);
  VersionState& state = states_[v.index()];
  host_ += machine_.submit;
  note_host(issued);
  Nanos begin = std::max({issued, state.host_ready, state.ready, host_});
  if (disturbed_) {
    begin = links_.resolve({begin, under_way_[v.index()].ready});
    under_way_[v.index()].ready = under_way_[v.index()].last_use = {};
  }
  state.ready = state.last_use = storage_.read(trace_.size(v), begin);
  state.filled = state.from_host = true;
}

/// Lets `stream` wait for copies of `v` in both directions.
void Timeline::await(VersionId v, Nanos& stream) {
  const VersionState& state = states_[v.index()];
  Moment back{state.filled && state.from_host ? state.ready : Nanos{}, {}}, out{state.host_ready, {}};
  if (disturbed_) {
    if (state.filled && state.from_host) back.after = under_way_[v.index()].ready;
    out.after = {under_way_[v.index()].to_host, 0};
  }
  const auto wait_until = [&](const Moment& end, Nanos& cause) {
    const Nanos time = disturbed_ ? links_.resolve(end) : end.time;
    if (time <= stream) return;
    totals_.stall.compute += time - stream;
    cause += time - stream;
    stream = time;
  };
  wait_until(out, totals_.stall.d2h);
  wait_until(back, totals_.stall.h2d);
}

/// Removes the copy on the host or in storage, which is useless from now on.
void Timeline::leave_host(VersionId v) {
  VersionState& state = states_[v.index()];
  if (state.in_host_pool) host_pool_.give_back(trace_.size(v));
  if (state.in_storage) storage_.give_back(trace_.size(v));
  state.on_host = state.in_host_pool = state.in_storage = false;
}

}  // namespace tidepool
