// Copies under way on a link whose directions slow each other down, as part of a State.
#pragma once

#include <array>
#include <cstdint>

#include "simulator/optimum/tiny_step.hpp"

namespace tidepool::optimum {

struct State;

/// Copies that have not ended. When they will is not known: copies that are added later may slow them down. Until then
/// the times of a State that wait for one are its mark(): later than every time.
struct SharedLink {
  struct Copy {
    Nanos after;       ///< it begins no earlier,
    Nanos after_mark;  ///< nor before this copy of the other direction has ended; 0: none
    std::uint8_t version = 0;
  };
  struct Lane {
    std::array<Copy, kMostVersionsShared> waiting = {};  ///< the first may be under way
    std::uint8_t count = 0;
    bool moves = false;      ///< the first is past its latency
    std::int64_t left = 0;   ///< of its data at clock: millionths of a nanosecond at the full rate
    std::int64_t ended = 0;  ///< copies before
    Nanos last_end;          ///< of those
  };
  std::array<Lane, 2> lanes = {};  ///< device to host, host to device
  Nanos clock;                     ///< no event before is left to be found

  static constexpr Nanos kMarks{std::int64_t{1} << 60};

  static bool is_mark(Nanos time) { return time >= kMarks; }
  /// Stands for the end of copy `number` of a direction, counted from 1.
  static Nanos mark(std::size_t lane, std::int64_t number) {
    return kMarks + Nanos{number * 2 + static_cast<std::int64_t>(lane)};
  }
};

/// Adds a copy. @return  its mark
Nanos add_copy(State& state, std::size_t lane, const SharedLink::Copy& copy);
/// Goes on until the copy of a mark has ended; other times are returned as they are.
Nanos resolve(const TinyStep& step, State& state, Nanos time);
/// Goes on to `time`, before which nothing will be added any more.
void advance(const TinyStep& step, State& state, Nanos time);
/// Goes on until all copies have ended.
void drain(const TinyStep& step, State& state);

}  // namespace tidepool::optimum
