#include "tests/oracle/remaining.hpp"

#include <algorithm>

namespace tidepool::optimum {
namespace {

/// Ops that must run again in every plan: their outputs are needed, and neither resident nor on the host.
Set reruns_of(const TinyStep& step, const State& state, Set absent) {
  const Set there = state.filled | state.on_host | step.undefined;
  Set ops = 0;
  for (Set open = absent & ~there; open != 0;) {
    const auto v = static_cast<std::size_t>(std::countr_zero(open));
    open &= open - 1;
    if (step.producer[v] < 0 || has(ops, static_cast<std::size_t>(step.producer[v]))) continue;
    const auto k = static_cast<std::size_t>(step.producer[v]);
    ops |= bit(k);
    open |= step.op[k].reads & ~there;
  }
  return ops;
}

/// The earliest times at which each stream, and all lanes together, can be done.
struct Ends {
  std::array<Nanos, kMostStreams> stream = {};
  Nanos all;
};

Ends earliest_ends(const TinyStep& step, const State& state) {
  if (SharedLink::is_mark(state.h2d) || SharedLink::is_mark(state.d2h)) {
    // Further copies do not make other copies end earlier.
    State ended = state;
    drain(step, ended);
    return earliest_ends(step, ended);
  }
  const Nanos base = state.base(step);
  Set absent = step.needed[state.position] & ~state.filled & ~step.undefined;
  const Set may_stay = (step.freedom.steady ? ~Set{0} : state.may_stay) & state.on_host;
  std::array<Nanos, kMostStreams> free = state.stream, sum = state.stream;
  if (step.freedom.remat && absent != 0) {
    Set read_later = 0;
    for (std::size_t k = state.position; k < step.ops(); ++k) read_later |= step.op[k].reads;
    for_each(reruns_of(step, state, absent & (read_later | ~may_stay)),
             [&](std::size_t k) { sum[step.op[k].stream] += step.op[k].duration; });
  }
  // Versions that can only come from the host.
  Set copied = absent & state.on_host;
  if (step.freedom.remat) copied &= ~step.regenerable;
  Nanos link = std::max(state.h2d, base);
  std::array<Nanos, kMostVersions> made;
  made.fill(kLongAgo);
  Set open = copied;
  for (std::size_t k = state.position; k < step.ops(); ++k) {
    const TinyOp& op = step.op[k];
    Nanos& stream = free[op.stream];
    for_each(op.reads & open, [&](std::size_t v) {
      link += step.time_in[v];
      stream = std::max(stream, state.host_ready[v] + step.time_in[v]);
    });
    if ((op.reads & open) != 0) stream = std::max(stream, link);
    open &= ~op.reads;
    for_each(op.reads, [&](std::size_t v) {
      if (has(state.filled, v))
        stream = std::max(stream, state.ready[v]);
      else
        stream = std::max(stream, made[v]);
    });
    stream += op.duration;
    sum[op.stream] += op.duration;
    for_each(op.makes, [&](std::size_t v) { made[v] = stream; });
  }
  for_each(step.outputs & open & ~may_stay, [&](std::size_t v) { link += step.time_in[v]; });
  Ends ends;
  ends.all = std::max(state.drained(step), link);
  for (std::size_t i = 0; i < step.streams; ++i) {
    ends.stream[i] = std::max(free[i], sum[i]);
    ends.all = std::max(ends.all, ends.stream[i]);
  }
  return ends;
}

}  // namespace

Nanos earliest_end(const TinyStep& step, const State& state) { return earliest_ends(step, state).all; }

Nanos earliest_next(const TinyStep& step, const State& state) {
  const Ends ends = earliest_ends(step, state);
  return *std::min_element(ends.stream.begin(), ends.stream.begin() + static_cast<std::ptrdiff_t>(step.streams));
}

}  // namespace tidepool::optimum
