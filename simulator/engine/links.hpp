// The host link in simulated time: one queue each way, and both directions slow each other down.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "simulator/engine/completion_time.hpp"
#include "simulator/machine/machine.hpp"

namespace tidepool {

enum class Direction : std::uint8_t { kOut, kIn };  ///< device to host, host to device

/// Each direction does one copy after the other. A copy begins when the one before it has ended and what it waits for
/// is there; after its latency it moves data. While both directions move data, each has only Link::duplex_ppm of its
/// rate: rates are constant between the beginnings and ends of moves (fluid sharing). Ends are rounded up to a
/// nanosecond; what is left to move is kept in millionths of one, so nothing else is rounded, and with full rates both
/// ways every copy takes exactly Link::time().
///
/// When a copy ends is not known when it is added: one the other way may still slow it down. So time goes on only as
/// far as somebody waits. What waits until a copy ends begins no earlier, and with one stream all that is added
/// afterwards begins no earlier either, so nothing that was answered would have come out otherwise. With several
/// streams a copy may be added for a time that is past already: it is slowed by what moved then, but slows nothing of
/// it. Amortised O(1) per copy, O(log n) for one in the past.
class Links {
 public:
  /// @param keep_past  whether copies may be added for a time that has been answered for
  Links(const Machine& machine, Nanos start, bool keep_past);

  /// Adds a copy that takes `latency` and then moves data for `moving` at the full rate.
  /// @param after  what it waits for; only copies that were added before
  /// @return  its number in its direction
  std::uint32_t add(Direction direction, const Moment& after, Nanos latency, Nanos moving);

  /// Goes on until all that a moment waits for has ended, and says when that is.
  Nanos resolve(const Moment& moment) {
    while (moment.after.out > lanes_[0].ends.size() || moment.after.in > lanes_[1].ends.size()) step();
    return when(moment);
  }
  /// Goes on to `time`, before which nothing will be added any more.
  void advance(Nanos time);
  /// Whether a copy has ended, as far as time has gone.
  bool ended(Direction direction, std::uint32_t number) const { return lane(direction).ends.size() >= number; }
  /// The number of the last copy that has ended, as far as time has gone.
  std::uint32_t ended_number(Direction direction) const {
    return static_cast<std::uint32_t>(lane(direction).ends.size());
  }
  /// Appends to `state` what later answers depend on, in times after `origin`, to which time has gone on: nothing is
  /// added for a time before it. O(copies under way).
  void record(Nanos origin, std::vector<std::int64_t>& state) const;
  /// The moment without the copies that have ended.
  Moment simplified(Moment moment) const;
  /// Beginning and end of a copy that has ended.
  std::pair<Nanos, Nanos> span(Direction direction, std::uint32_t number) const {
    return {lane(direction).begins[number - 1], lane(direction).ends[number - 1]};
  }
  /// When a kernel ends that begins at `start` and takes `duration` alone, if copies under way slow it down: while data
  /// moves out, it does 1 in 1 + `out_ppm` / 10^6 of its work, likewise for data that moves in, and both add up.
  Nanos end_of_kernel(Nanos start, Nanos duration, std::int64_t out_ppm, std::int64_t in_ppm);
  /// Goes on until all copies have ended, and says when that is.
  Nanos drain();
  /// The same if none is added any more; time does not go on. O(copies so far).
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
    std::vector<Nanos> begins, ends;  ///< of the copies before
    std::uint32_t added = 0;
    std::int64_t shared_ppm = 0;  ///< rate while both directions move data; of 10^6
    bool moves = false;           ///< the first waiting copy is past its latency
    Nanos since;                  ///< ... and has been from here
    Int128 left = 0;              ///< of its data: millionths of a nanosecond at the full rate, at clock_
    std::deque<Span> past;        ///< when data moved, before; only with keep_past
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
  Nanos clock_;  ///< no event before this is left to be found
  Nanos start_;
  bool keep_past_;
};

}  // namespace tidepool
