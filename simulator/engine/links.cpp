#include "simulator/engine/links.hpp"

#include <algorithm>
#include <limits>

namespace tidepool {
namespace {

constexpr Nanos kNever{std::numeric_limits<std::int64_t>::max()};

/// Time in which `work` is done at `rate`, rounded up.
Nanos time_for(Int128 work, std::int64_t rate) {
  return Nanos{static_cast<std::int64_t>(std::min<Int128>((work + rate - 1) / rate, kNever.count() / 4))};
}

}  // namespace

Links::Links(const Machine& machine, Nanos start, bool keep_past)
    : clock_{start}, start_{start}, keep_past_{keep_past} {
  lane(Direction::kOut).shared_ppm = machine.d2h.duplex_ppm;
  lane(Direction::kIn).shared_ppm = machine.h2d.duplex_ppm;
}

std::uint32_t Links::add(Direction direction, const Moment& after, Nanos latency, Nanos moving) {
  lane(direction).waiting.push_back({after, latency, moving});
  return ++lane(direction).added;
}

/// The time of a moment whose copies have all ended.
Nanos Links::when(const Moment& moment) const {
  Nanos time = moment.time;
  if (moment.after.out > 0) time = std::max(time, lanes_[0].ends[moment.after.out - 1]);
  if (moment.after.in > 0) time = std::max(time, lanes_[1].ends[moment.after.in - 1]);
  return time;
}

Moment Links::simplified(Moment moment) const {
  const Copies open{ended(Direction::kOut, moment.after.out) ? 0 : moment.after.out,
                    ended(Direction::kIn, moment.after.in) ? 0 : moment.after.in};
  const Copies over{open.out == 0 ? moment.after.out : 0, open.in == 0 ? moment.after.in : 0};
  return {when({moment.time, over}), open};
}

/// The time of the next event of a direction at the current rates: its first copy begins to move data or, if it moves
/// already, ends. kNever if there is no copy, or if the first one waits for a copy that has not ended.
Nanos Links::next_event(std::size_t direction) const {
  const Lane& lane = lanes_[direction];
  if (lane.moves) return clock_ + time_for(lane.left, lanes_[1 - direction].moves ? lane.shared_ppm : kFullRate);
  if (lane.waiting.empty()) return kNever;
  const Copy& copy = lane.waiting.front();
  if (!ended(Direction::kOut, copy.after.after.out) || !ended(Direction::kIn, copy.after.after.in)) return kNever;
  const Nanos engine_free = lane.ends.empty() ? start_ : lane.ends.back();
  return std::max(when(copy.after), engine_free) + copy.latency;
}

/// Advances to the next event. @return  false if there is none
bool Links::step() {
  const std::array<Nanos, 2> events{next_event(0), next_event(1)};
  const Nanos time = std::min(events[0], events[1]);
  if (time == kNever) return false;
  if (time < clock_) {
    catch_up(events[0] == time ? 0 : 1, time);
    return true;
  }
  go_on(time);
  for (std::size_t i = 0; i < 2; ++i) {
    if (events[i] != time) continue;
    Lane& lane = lanes_[i];
    if (lane.moves) {
      finish(lane, time);
    } else {
      lane.moves = true;
      lane.since = time;
      lane.left = static_cast<Int128>(lane.waiting.front().moving.count()) * kFullRate;
    }
  }
  return true;
}

/// Moves data up to `time`; no copy begins or ends before it.
void Links::go_on(Nanos time) {
  const bool both = lanes_[0].moves && lanes_[1].moves;
  for (Lane& lane : lanes_)
    if (lane.moves)
      lane.left = std::max<Int128>(
          0, lane.left - static_cast<Int128>((time - clock_).count()) * (both ? lane.shared_ppm : kFullRate));
  clock_ = time;
}

void Links::finish(Lane& lane, Nanos time) {
  if (keep_past_ && lane.since < time) lane.past.push_back({lane.since, time});
  lane.begins.push_back(lane.since - lane.waiting.front().latency);
  lane.ends.push_back(time);
  lane.waiting.pop_front();
  lane.moves = false;
}

/// Moves the data of a copy that begins in the past up to now, or to its end.
void Links::catch_up(std::size_t direction, Nanos from) {
  Lane& lane = lanes_[direction];
  const Lane& other = lanes_[1 - direction];
  lane.since = from;
  lane.left = static_cast<Int128>(lane.waiting.front().moving.count()) * kFullRate;
  while (from < clock_) {
    const auto [both, until] = activity(other, from);
    const std::int64_t rate = both ? lane.shared_ppm : kFullRate;
    const Nanos end = from + time_for(lane.left, rate);
    if (end <= until) return finish(lane, end);
    lane.left -= static_cast<Int128>((until - from).count()) * rate;
    from = until;
  }
  lane.moves = true;
}

/// Whether data moved at `time`, which is past, and the time until which this did not change.
Links::Activity Links::activity(const Lane& lane, Nanos time) const {
  const auto next = std::upper_bound(lane.past.begin(), lane.past.end(), time,
                                     [](Nanos at, const Span& span) { return at < span.last; });
  if (next != lane.past.end()) return next->first <= time ? Activity{true, next->last} : Activity{false, next->first};
  if (lane.moves) return lane.since <= time ? Activity{true, clock_} : Activity{false, std::min(lane.since, clock_)};
  return {false, clock_};
}

void Links::advance(Nanos time) {
  while (std::min(next_event(0), next_event(1)) <= time) step();
  for (Lane& lane : lanes_)
    while (!lane.past.empty() && lane.past.front().last <= time) lane.past.pop_front();
}

void Links::record(Nanos origin, std::vector<std::int64_t>& state) const {
  const auto since = [&](Nanos time) { return std::max(time - origin, Nanos{}).count(); };
  const bool any_moves = lanes_[0].moves || lanes_[1].moves;  // then `left` is the work that remains at clock_
  state.push_back(any_moves ? (clock_ - origin).count() : since(clock_));
  for (const Lane& lane : lanes_) {
    state.push_back(lane.ends.empty() ? 0 : since(lane.ends.back()));
    state.push_back(static_cast<std::int64_t>(lane.waiting.size()));
    for (const Copy& copy : lane.waiting) {
      const Moment after = simplified(copy.after);
      state.push_back(since(after.time));
      state.push_back(after.after.out == 0 ? 0 : after.after.out - ended_number(Direction::kOut));
      state.push_back(after.after.in == 0 ? 0 : after.after.in - ended_number(Direction::kIn));
      state.push_back(copy.latency.count());
      state.push_back(copy.moving.count());
    }
    state.push_back(lane.moves ? 1 : 0);
    if (lane.moves) {
      state.push_back(static_cast<std::int64_t>(lane.left / kFullRate));
      state.push_back(static_cast<std::int64_t>(lane.left % kFullRate));
      state.push_back(since(lane.since));
    }
    for (const Span& span : lane.past) {
      if (span.last <= origin) continue;
      state.push_back(since(span.first));
      state.push_back(since(span.last));
    }
  }
}

Nanos Links::end_of_kernel(Nanos start, Nanos duration, std::int64_t out_ppm, std::int64_t in_ppm) {
  // An undisturbed nanosecond does kScale units of work; `slowed` is at most 21 * 10^6 (twice a slowdown of 1000 %).
  constexpr Int128 kScale = 1'000'000'000'000;
  Int128 left = static_cast<Int128>(duration.count()) * kScale;
  Nanos now = start;
  for (;;) {
    while (std::min(next_event(0), next_event(1)) <= now) step();
    const Nanos next = std::min(next_event(0), next_event(1));
    const Activity out = now < clock_ ? activity(lanes_[0], now) : Activity{lanes_[0].moves, next};
    const Activity in = now < clock_ ? activity(lanes_[1], now) : Activity{lanes_[1].moves, next};
    const std::int64_t slowed = kFullRate + (out.moves ? out_ppm : 0) + (in.moves ? in_ppm : 0);
    const auto rate = static_cast<std::int64_t>(kScale * kFullRate / slowed);
    const Nanos end = now + time_for(left, rate), until = std::min({out.until, in.until, next});
    if (end <= until) return end;
    left -= static_cast<Int128>((until - now).count()) * rate;
    now = until;
  }
}

Nanos Links::drain() {
  while (step()) {
  }
  Nanos last = start_;
  for (const Lane& lane : lanes_)
    if (!lane.ends.empty()) last = std::max(last, lane.ends.back());
  return last;
}

}  // namespace tidepool
