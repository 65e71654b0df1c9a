// The host link in simulated time: one queue each way, and both directions slow each other down. Times that depend on
// copies under way.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "simulator/machine.hpp"
#include "traces/base/quantity.hpp"

namespace tidepool {

/// Copies, by their number in each direction of the link; numbers count from 1, and 0 is no copy. A direction ends its
/// copies in order, so the largest number stands for all before it.
struct Copies {
  std::uint32_t out = 0;  ///< device to host
  std::uint32_t in = 0;   ///< host to device
  bool none() const { return (out | in) == 0; }
  bool operator==(const Copies&) const = default;
};

/// The later of `time` and the ends of some copies.
struct Moment {
  Nanos time = {};
  Copies after = {};
};

inline Copies latest(Copies a, Copies b) { return {std::max(a.out, b.out), std::max(a.in, b.in)}; }
inline Moment latest(Moment a, Moment b) { return {std::max(a.time, b.time), latest(a.after, b.after)}; }

/// The full rate, in the unit of Link::duplex_ppm: millionths of the rate of a direction while the other one is idle.
inline constexpr std::int64_t kFullRate = 1'000'000;

enum class Direction : std::uint8_t { kOut, kIn };  ///< device to host, host to device

/// Each direction does one copy after the other. A copy begins when the copy before it has ended and the copies that it
/// waits for have ended; after its latency it moves data. While both directions move data, each has only
/// Link::duplex_ppm of its rate: rates are constant between the beginnings and ends of moves (fluid sharing). Ends are
/// rounded up to a nanosecond. Remaining work is kept in millionths of a nanosecond, so nothing else is rounded; with
/// full rates both ways, every copy takes exactly Link::time().
///
/// The end of a copy is not known when it is added: a later copy the other way may slow it down. So simulated time
/// advances only to the ends that are asked for. Work that waits for a copy begins no earlier than its end; with one
/// stream, all copies added later begin no earlier either, so they cannot change an answer given before. With several
/// streams, a copy may be added for a time that is past: copies that moved data then slow it down, but their own times
/// stay as they were. Amortised O(1) per copy, O(log n) for one in the past.
class Links {
 public:
  /// @param keep_past  whether copies may be added for times that are past
  Links(const Machine& machine, Nanos start, bool keep_past);

  /// Adds a copy that takes `latency` and then moves data for `moving` at the full rate.
  /// @param after  the time and the copies that it waits for; these copies have been added before
  /// @return  its number in its direction
  std::uint32_t add(Direction direction, const Moment& after, Nanos latency, Nanos moving);

  /// Advances until all copies of a moment have ended. @return  that time
  Nanos resolve(const Moment& moment) {
    while (moment.after.out > lanes_[0].ends.size() || moment.after.in > lanes_[1].ends.size()) step();
    return when(moment);
  }
  /// Advances to `time`; nothing will be added before it any more.
  void advance(Nanos time);
  /// Whether a copy has ended by now.
  bool ended(Direction direction, std::uint32_t number) const { return lane(direction).ends.size() >= number; }
  /// The number of the last copy that has ended by now.
  std::uint32_t ended_number(Direction direction) const {
    return static_cast<std::uint32_t>(lane(direction).ends.size());
  }
  /// Appends to `state` all numbers on which later answers depend, with times counted from `origin`. Time has advanced
  /// to `origin`, and nothing is added before it. O(copies under way).
  void record(Nanos origin, std::vector<std::int64_t>& state) const;
  /// The moment without the copies that have ended.
  Moment simplified(Moment moment) const;
  /// Beginning and end of a copy that has ended.
  std::pair<Nanos, Nanos> span(Direction direction, std::uint32_t number) const {
    return {lane(direction).begins[number - 1], lane(direction).ends[number - 1]};
  }
  /// End of a kernel that begins at `start` and takes `duration` alone, if copies under way slow it down: while data
  /// moves out, its speed is 1 / (1 + `out_ppm` / 10^6); likewise for data that moves in, and both slowdowns add up.
  Nanos end_of_kernel(Nanos start, Nanos duration, std::int64_t out_ppm, std::int64_t in_ppm);
  /// Advances until all copies have ended. @return  that time
  Nanos drain();
  /// The same time, if no copy is added any more; does not advance. O(copies so far).
  Nanos drained() const { return Links{*this}.drain(); }
  std::uint32_t added(Direction direction) const { return lane(direction).added; }
  bool empty() const { return lanes_[0].added + lanes_[1].added == 0; }

 private:
  struct Copy {
    Moment after;
    Nanos latency, moving;
  };
  struct Span {
    Nanos first, last;
  };
  struct Lane {
    std::deque<Copy> waiting;         ///< the first may be under way
    std::vector<Nanos> begins, ends;  ///< of copies that have ended
    std::uint32_t added = 0;
    std::int64_t shared_ppm = 0;  ///< rate while both directions move data; of 10^6
    bool moves = false;           ///< the first waiting copy is past its latency
    Nanos since;                  ///< the time at which it began to move data
    Int128 left = 0;              ///< its work left at clock_, in millionths of a nanosecond at the full rate
    std::deque<Span> past;        ///< earlier times at which data moved; only with keep_past
  };
  struct Activity {
    bool moves = false;
    Nanos until;
  };

  Lane& lane(Direction direction) { return lanes_[static_cast<std::size_t>(direction)]; }
  const Lane& lane(Direction direction) const { return lanes_[static_cast<std::size_t>(direction)]; }
  Nanos when(const Moment& moment) const;
  Nanos next_event(std::size_t direction) const;
  bool step();
  void go_on(Nanos time);
  void finish(Lane& lane, Nanos time);
  void catch_up(std::size_t direction, Nanos from);
  Activity activity(const Lane& lane, Nanos time) const;

  std::array<Lane, 2> lanes_;
  Nanos clock_;  ///< no event before this time is still to come
  Nanos start_;
  bool keep_past_;
};

}  // namespace tidepool
