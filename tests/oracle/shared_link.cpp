#include "tests/oracle/shared_link.hpp"

#include <algorithm>
#include <limits>

#include "simulator/engine/links.hpp"
#include "tests/oracle/state.hpp"

namespace tidepool::optimum {
namespace {

constexpr Nanos kNever{std::numeric_limits<std::int64_t>::max()};

const Link& link_of(const TinyStep& step, std::size_t lane) { return lane == 0 ? step.machine.d2h : step.machine.h2d; }

Nanos latency_of(const TinyStep& step, std::size_t lane, std::size_t v) {
  return std::min(link_of(step, lane).latency, lane == 0 ? step.time_out[v] : step.time_in[v]);
}

/// The time of the next event of a direction if the other direction has no event before: its first copy begins to move
/// data or, if it moves already, ends. kNever if no copy can begin.
Nanos next_event(const TinyStep& step, const SharedLink& link, std::size_t i) {
  const SharedLink::Lane& lane = link.lanes[i];
  if (lane.moves) {
    const std::int64_t rate = link.lanes[1 - i].moves ? link_of(step, i).duplex_ppm : kFullRate;
    return link.clock + Nanos{(lane.left + rate - 1) / rate};
  }
  if (lane.count == 0 || lane.waiting[0].after_mark != Nanos{}) return kNever;
  return std::max(lane.waiting[0].after, lane.last_end) + latency_of(step, i, lane.waiting[0].version);
}

void go_on(const TinyStep& step, SharedLink& link, Nanos time) {
  const bool both = link.lanes[0].moves && link.lanes[1].moves;
  for (std::size_t i = 0; i < 2; ++i) {
    SharedLink::Lane& lane = link.lanes[i];
    const std::int64_t rate = both ? link_of(step, i).duplex_ppm : kFullRate;
    if (lane.moves) lane.left = std::max<std::int64_t>(0, lane.left - (time - link.clock).count() * rate);
  }
  link.clock = time;
}

/// Ends the first copy of a direction: every time that waits for it is known now.
void finish(State& state, std::size_t i, Nanos time) {
  SharedLink::Lane& lane = state.link.lanes[i];
  const Nanos mark = SharedLink::mark(i, ++lane.ended);
  lane.last_end = time;
  lane.moves = false;
  std::copy(lane.waiting.begin() + 1, lane.waiting.begin() + lane.count, lane.waiting.begin());
  --lane.count;
  const auto settle = [&](Nanos& at) {
    if (at == mark) at = time;
  };
  std::for_each(state.ready.begin(), state.ready.end(), settle);
  std::for_each(state.last_use.begin(), state.last_use.end(), settle);
  std::for_each(state.host_ready.begin(), state.host_ready.end(), settle);
  std::for_each(state.free_from.begin(), state.free_from.end(), settle);
  settle(state.counted_free_from);
  settle(state.h2d);
  settle(state.d2h);
  SharedLink::Lane& other = state.link.lanes[1 - i];
  for (std::size_t j = 0; j < other.count; ++j)
    if (SharedLink::Copy& copy = other.waiting[j]; copy.after_mark == mark)
      copy.after = std::max(copy.after, time), copy.after_mark = Nanos{};
}

/// Advances to the next event. @return  false if there is none
bool find_event(const TinyStep& step, State& state) {
  SharedLink& link = state.link;
  const std::array<Nanos, 2> events{next_event(step, link, 0), next_event(step, link, 1)};
  const Nanos time = std::min(events[0], events[1]);
  if (time == kNever) return false;
  go_on(step, link, time);
  for (std::size_t i = 0; i < 2; ++i) {
    SharedLink::Lane& lane = link.lanes[i];
    if (events[i] != time) continue;
    if (lane.moves) {
      finish(state, i, time);
    } else {
      const std::size_t v = lane.waiting[0].version;
      const Nanos whole = i == 0 ? step.time_out[v] : step.time_in[v];
      lane.moves = true;
      lane.left = (whole - latency_of(step, i, v)).count() * kFullRate;
    }
  }
  return true;
}

}  // namespace

Nanos add_copy(State& state, std::size_t lane, const SharedLink::Copy& copy) {
  SharedLink::Lane& to = state.link.lanes[lane];
  to.waiting[to.count++] = copy;
  return SharedLink::mark(lane, to.ended + to.count);
}

Nanos resolve(const TinyStep& step, State& state, Nanos time) {
  if (!SharedLink::is_mark(time)) return time;
  const std::size_t i = static_cast<std::size_t>((time - SharedLink::kMarks).count() % 2);
  const std::int64_t number = (time - SharedLink::kMarks).count() / 2;
  while (state.link.lanes[i].ended < number && find_event(step, state)) {
  }
  return state.link.lanes[i].last_end;
}

void advance(const TinyStep& step, State& state, Nanos time) {
  while (std::min(next_event(step, state.link, 0), next_event(step, state.link, 1)) <= time) find_event(step, state);
  if (state.link.clock < time) go_on(step, state.link, time);
}

void drain(const TinyStep& step, State& state) {
  while (find_event(step, state)) {
  }
  for (Nanos* time : {&state.h2d, &state.d2h}) *time = resolve(step, state, *time);
}

}  // namespace tidepool::optimum
